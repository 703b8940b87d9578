"""scripts/demo when it is told to stop: the signal reaches launch, and nothing stays."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.e2e

Marked = Callable[[str], list[str]]


@pytest.fixture
def demo(root: Path, tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """The demo in a session of its own, its output in a file, as far as the load of its first point."""
    env = {**os.environ, "DEMO_TEST_MARK": str(tmp_path)}
    command = [str(root / "scripts/demo"), "--out", str(tmp_path / "out")]
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen(command, env=env, stdout=log, stderr=log, start_new_session=True, cwd="/")
    deadline = time.monotonic() + 120
    while "client: aiperf" not in (tmp_path / "log").read_text():
        assert process.poll() is None, (tmp_path / "log").read_text()
        assert time.monotonic() < deadline, (tmp_path / "log").read_text()
        time.sleep(0.1)
    yield process
    process.kill()
    process.wait()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_to_the_script_alone_stops_everything(
    demo: subprocess.Popen[bytes], tmp_path: Path, number: signal.Signals, marked: Marked
) -> None:
    assert len(marked(str(tmp_path))) >= 5  # script, launch, two replicas, router, …
    demo.send_signal(number)
    assert demo.wait(30) == 128 + number
    assert marked(str(tmp_path)) == []
    status = json.loads((tmp_path / "out/run/status.json").read_text(encoding="utf-8"))
    assert status["outcome"] == "interrupted"
    assert not (tmp_path / "out/report").exists()


def test_ctrl_c_at_a_terminal_stops_everything(demo: subprocess.Popen[bytes], tmp_path: Path, marked: Marked) -> None:
    os.killpg(demo.pid, signal.SIGINT)  # what a terminal does: everything in the foreground group gets it
    assert demo.wait(30) == 130
    assert marked(str(tmp_path)) == []
    status = json.loads((tmp_path / "out/run/status.json").read_text(encoding="utf-8"))
    assert (status["outcome"], status["signal"]) == ("interrupted", signal.SIGINT)

"""What launch is given by files, logs and the system may be anything: known errors, and always an end."""

from __future__ import annotations

import fcntl
import io
import json
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from serving_bench.contracts import Expect, Outcome, Plan, ProcessSpec, Timeouts
from serving_bench.errors import InputError, SystemUnderTestError
from serving_bench.files import write_model
from serving_bench.launch import environ, environment, logs, ports, results
from serving_bench.launch.client import check_client, has_completed
from serving_bench.launch.points import _summaries
from serving_bench.launch.rundir import Console, Recorder
from serving_bench.launch.runtimes.process import spawn
from serving_bench.launch.step import LaunchOptions, _make_scratch, remove_tree, run
from serving_bench.process import Family


@pytest.mark.parametrize(
    "changes",
    [
        {"conc": ()}, {"conc": (0,)}, {"conc": (-1,)}, {"conc": (4, 4)}, {"conc": (10**9,)},
        {"replicas": 0}, {"replicas": -1}, {"gpus": -1}, {"repeats": 0},
    ],
)  # fmt: skip
def test_a_plan_that_measures_nothing_is_no_plan(make_plan: Callable[..., Plan], changes: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        make_plan(**changes)


@pytest.mark.parametrize(
    "make",
    [
        lambda: ProcessSpec(kind="x", argv=()),
        lambda: ProcessSpec(kind="x", argv=("a", "b\0")),
        lambda: ProcessSpec(kind="x", argv=("a",), env={"A=B": "c"}),
        lambda: ProcessSpec(kind="x", argv=("a",), env={"A": "\0"}),
        lambda: Expect(router_log=("(",)),
        lambda: Timeouts(ready_s=-1),
        lambda: Timeouts(stop_s=0),
    ],
)
def test_what_no_process_can_be_started_with(make: Callable[[], Any]) -> None:
    with pytest.raises(ValidationError):
        make()


def test_a_word_that_no_command_can_hold_is_a_known_error(tmp_path: Path) -> None:
    with pytest.raises(SystemUnderTestError, match="surrogates not allowed") as caught:
        spawn(Family(), "x", ("true", "\ud800"), env={}, cwd=tmp_path, log=tmp_path / "log")
    assert caught.value.code == "SB-COMMAND"


def _options(make_plan: Callable[..., Plan], folder: Path, **changes: Any) -> LaunchOptions:
    (folder / "model").mkdir()
    plan = make_plan()
    model = plan.model.model_copy(update={"id": None, "revision": None, "path": "model"})
    write_model(folder / "plan.json", plan.model_copy(update={"model": model}))
    return LaunchOptions(**{"plan": folder / "plan.json", "out": folder / "out", "root": folder} | changes)


def test_a_bench_environment_that_is_none(make_plan: Callable[..., Plan], tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no bin folder") as caught:
        run(_options(make_plan, tmp_path, bench_env=tmp_path / "none"), {}, io.StringIO())
    assert caught.value.code == "SB-BENCH-ENV"


def test_a_run_directory_that_is_a_loop(make_plan: Callable[..., Plan], tmp_path: Path) -> None:
    (tmp_path / "out").symlink_to("out")
    with pytest.raises(InputError) as caught:
        run(_options(make_plan, tmp_path), {}, io.StringIO())
    assert caught.value.code == "SB-OUT-FOLDER"


def test_aiperf_is_looked_for_before_anything_starts(make_plan: Callable[..., Plan], tmp_path: Path) -> None:
    status = run(_options(make_plan, tmp_path), {"PATH": str(tmp_path), "TMPDIR": "/tmp"}, io.StringIO())
    assert (status.outcome, status.code) == (Outcome.FAILED, "SB-COMMAND")
    assert not (tmp_path / "out" / "server.0.log").exists()
    with pytest.raises(SystemUnderTestError):
        check_client({"PATH": str(tmp_path)})


def test_a_temporary_folder_that_is_none() -> None:
    with pytest.raises(InputError, match="/nonexistent") as caught:
        _make_scratch({"TMPDIR": "/nonexistent"})
    assert caught.value.code == "SB-TMPDIR"


def test_a_tree_goes_whoever_was_there_before(tmp_path: Path) -> None:
    locked = tmp_path / "tree" / "locked"
    locked.mkdir(parents=True)
    (locked / "file").write_text("")
    locked.chmod(0o500)
    remove_tree(tmp_path / "tree")
    assert not (tmp_path / "tree").exists()
    remove_tree(tmp_path / "tree")


def test_a_run_directory_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path, Console(io.StringIO(), {}))
    (tmp_path / "events.jsonl").mkdir()
    with pytest.raises(InputError, match="Is a directory") as caught:
        recorder.event("x")
    assert caught.value.code == "SB-OS"


@pytest.mark.parametrize("answer", ["hello", "[1, 2]", "\\377\\376"])
def test_a_python_that_says_something_else_is_not_known(tmp_path: Path, answer: str) -> None:
    script = tmp_path / "python3"
    script.write_text(f"#!/bin/sh\nprintf '{answer}'\n")
    script.chmod(0o755)
    found = environment.describe({"PATH": f"{tmp_path}:{os.environ['PATH']}"}, tmp_path)
    assert found["bench"] == {"python": None, "packages": {}, "note": "python3 did not answer"}


def test_a_user_without_any_home_has_a_cache_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.setattr(os, "getuid", lambda: 123_456)
    assert environ.hf_home({}).is_absolute()


def test_evidence_steers_no_terminal(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_bytes(b"\x1b]0;title\x07a\x00\x1b[2J\x1b[?25lb\x08\x9b\n")
    assert logs.tail(log) == ("ab\ufffd",)


def test_a_line_without_end_is_read_once_and_in_pieces(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_bytes(b"x" * 3 * 1024 * 1024 + b"still going")
    conflicts = logs.PortConflicts(log)
    assert conflicts.look() is None
    assert conflicts._offset == 3 * 1024 * 1024
    with log.open("ab") as out:
        out.write(b": address already in use\n")
    assert conflicts.look() == "still going: address already in use"
    log.unlink()
    assert conflicts.look() is None


@pytest.mark.parametrize("line", ["[]", "7", '{"metadata": 3}', '{"metadata": null}', "[" * 100_000])
def test_a_record_that_is_none_is_not_completed(tmp_path: Path, line: str) -> None:
    (tmp_path / "records").write_text(line + "\n")
    assert has_completed(tmp_path / "records") == (False, None)


@pytest.mark.parametrize("text", ["", "[]", "{", '{"phases": 3, "benchmark_duration": {"avg": NaN}}'])
def test_a_summary_that_is_none_gives_nulls(make_plan: Callable[..., Plan], tmp_path: Path, text: str) -> None:
    for name in ("profile_export_aiperf.json", "phase_manifest.json"):
        (tmp_path / name).write_text(text)
    point: Any = type("P", (), {"conc": 1, "repeat": 0, "outcome": Outcome.PASSED, "code": None})
    row = results.row(make_plan(), point, *_summaries(tmp_path))
    assert (row["num_requests_total"], row["duration_s"]) == (None, None)
    json.dumps(row, allow_nan=False)


def test_a_lock_that_is_never_given_back_is_given_up_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ports, "LOCK_S", 0.2)
    ports.acquire(1, folder=tmp_path).close()
    with (tmp_path / "lock").open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        begun = time.monotonic()
        with pytest.raises(SystemUnderTestError) as caught:
            ports.acquire(1, folder=tmp_path)
        assert (caught.value.code, time.monotonic() - begun < 5) == ("SB-LEASE-LOCKED", True)
        threading.Timer(0.1, lambda: fcntl.flock(held, fcntl.LOCK_UN)).start()
        ports.acquire(1, folder=tmp_path).close()
        time.sleep(0.1)

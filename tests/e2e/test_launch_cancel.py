"""A cancelled run ends as cancelled, quickly, at every stage, and leaves nothing."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.e2e.conftest import Plans, Run

pytestmark = pytest.mark.e2e

QUICK_S = 8.0
"""A runner gives a cancelled job about 10 s before it kills."""


def _starting(run: Run) -> None:
    run.wait_for_line("  router: ")


def _ready(run: Run) -> None:
    run.wait_for_line("ready: ")


def _loading(run: Run) -> None:
    run.wait_for_load("c2")


def _assert_cancelled(run: Run, number: signal.Signals, stages: set[str], begun: float) -> None:
    exit_status = run.end()
    assert time.monotonic() - begun < QUICK_S
    assert exit_status == 128 + number, run.output()
    status = run.status()
    assert (status["outcome"], status["code"], status["signal"]) == ("interrupted", "SB-INTERRUPTED", number)
    assert status["stage"] in stages
    assert status["timings_s"]["stopping"] < QUICK_S
    events = [json.loads(line)["event"] for line in (run.out / "events.jsonl").read_text().splitlines()]
    assert events.count("end") == 1
    assert "after-the-end" not in events
    assert f"interrupted while {status['stage']}: cancelled by {number.name} [SB-INTERRUPTED]" in run.output()
    assert "Traceback" not in run.output()
    left = run.sandbox.census(run.out)
    assert (left.processes, left.listening, left.leases, left.files) == ((), (), (), ())


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda number: number.name)
@pytest.mark.parametrize(
    ("until", "stages"),
    [(_starting, {"starting"}), (_ready, {"ready", "loading"}), (_loading, {"loading"})],
    ids=["starting", "ready", "loading"],
)
def test_a_signal_ends_the_run(
    start: Callable[..., Run], plans: Plans, until: Callable[[Run], None], stages: set[str], number: signal.Signals
) -> None:
    run = start(plans.endless())
    until(run)
    begun = time.monotonic()
    run.signal(number)
    _assert_cancelled(run, number, stages, begun)
    if until is _loading:
        point = run.point("c2")
        assert (point["outcome"], point["code"]) == ("interrupted", "SB-INTERRUPTED")
        assert list((run.out / "trace").glob("start0.*.jsonl.gz")), "the trace is there as far as it got"


def test_more_signals_do_not_break_the_teardown(start: Callable[..., Run], plans: Plans) -> None:
    """HUP, and then what an impatient user and a runner add to it."""
    run = start(plans.endless())
    _ready(run)
    begun = time.monotonic()
    run.signal(signal.SIGHUP)
    while run.popen.poll() is None and time.monotonic() - begun < QUICK_S:
        time.sleep(0.05)
        if run.popen.poll() is None:
            run.signal(signal.SIGINT)
            run.signal(signal.SIGTERM)
    _assert_cancelled(run, signal.SIGHUP, {"ready", "loading"}, begun)

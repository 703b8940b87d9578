"""The run directory's own records, and how a run's end is told."""

from __future__ import annotations

import io
import json
import os
from pathlib import Path

import pytest

from serving_bench.contracts import RunStatus, Stage
from serving_bench.errors import InputError, InterruptedRunError, SystemUnderTestError
from serving_bench.files import read_model
from serving_bench.launch.rundir import Console, Recorder, failure_lines, prepare


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class ClosedPipe(io.StringIO):
    """Somebody who has gone."""

    def __init__(self) -> None:
        super().__init__()
        self.tries = 0

    def write(self, _: str) -> int:
        self.tries += 1
        raise BrokenPipeError


def _recorder(out: Path, clock: Clock | None = None) -> tuple[Recorder, io.StringIO]:
    text = io.StringIO()
    return Recorder(out, Console(text, {}), clock or Clock()), text


def _status(out: Path) -> RunStatus:
    return read_model(out / "status.json", RunStatus)


def test_status_follows_the_stages_and_their_time_adds_up(tmp_path: Path) -> None:
    clock = Clock()
    recorder, text = _recorder(tmp_path, clock)
    assert (_status(tmp_path).outcome, _status(tmp_path).stage) == ("running", "planned")
    for stage, seconds in ((Stage.STARTING, 2.0), (Stage.LOADING, 3.0), (Stage.STARTING, 5.0), (Stage.STOPPING, 7.0)):
        clock.now += seconds
        recorder.stage(stage, "note")
        assert _status(tmp_path).stage == stage
    clock.now += 11.0
    recorder.finish(stopping_s=11.0)
    status = _status(tmp_path)
    assert (status.outcome, status.stage, status.code) == ("passed", "done", None)
    assert status.timings_s == {"planned": 2.0, "starting": 3.0 + 7.0, "loading": 5.0, "stopping": 11.0}
    assert text.getvalue().splitlines()[0] == "starting: note"


def test_a_failure_keeps_the_stage_it_came_in_and_is_not_passed_over(tmp_path: Path) -> None:
    clock = Clock()
    recorder, _ = _recorder(tmp_path, clock)
    recorder.stage(Stage.LOADING)
    error = SystemUnderTestError("it fell over", code="SB-X", hint="help", evidence=["first", "last"], retriable=True)
    clock.now += 4.0
    recorder.fail(error)
    written = _status(tmp_path)
    assert (written.outcome, written.stage, written.code, written.retriable) == ("failed", "loading", "SB-X", True)
    recorder.finish(stopping_s=1.5)
    final = _status(tmp_path)
    assert (final.outcome, final.stage, final.code) == ("failed", "loading", "SB-X")
    assert final.timings_s == {"planned": 0.0, "loading": 4.0, "stopping": 1.5}
    assert failure_lines(final) == ["failed while loading: it fell over [SB-X]", "  first", "  last", "hint: help"]


def test_the_first_end_is_the_end(tmp_path: Path) -> None:
    clock = Clock()
    recorder, _ = _recorder(tmp_path, clock)
    recorder.fail(SystemUnderTestError("it fell over", code="SB-X"))
    clock.now += 5.0
    recorder.fail(InterruptedRunError("cancelled by SIGTERM", signal_number=15))
    recorder.finish(stopping_s=5.0)
    status = _status(tmp_path)
    assert (status.outcome, status.code, status.signal) == ("failed", "SB-X", None)
    assert status.timings_s == {"planned": 0.0, "stopping": 5.0}
    events = [json.loads(line)["event"] for line in (tmp_path / "events.jsonl").read_text().splitlines()]
    assert events == ["end", "after-the-end"]


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (
            InterruptedRunError("cancelled by SIGTERM", signal_number=15),
            ("interrupted", "SB-INTERRUPTED", "cancelled by SIGTERM", 15),
        ),
        (
            InputError("wrong digest", code="SB-DATASET-DIGEST"),
            ("failed", "SB-DATASET-DIGEST", "wrong digest", None),
        ),
        (KeyError("oops"), ("failed", "SB-BUG", "KeyError: 'oops'", None)),
    ],
)
def test_every_kind_of_end(tmp_path: Path, error: Exception, expected: tuple[str, str | None, str, int | None]) -> None:
    recorder, _ = _recorder(tmp_path)
    recorder.fail(error)
    status = _status(tmp_path)
    assert (status.outcome, status.code, status.message, status.signal) == expected


def test_a_run_that_passed_has_no_failure_lines(tmp_path: Path) -> None:
    recorder, _ = _recorder(tmp_path)
    recorder.finish(stopping_s=0.0)
    assert failure_lines(recorder.status) == []


def test_only_the_end_of_long_evidence_is_printed(tmp_path: Path) -> None:
    recorder, _ = _recorder(tmp_path)
    recorder.fail(SystemUnderTestError("x", code="SB-X", evidence=[str(number) for number in range(50)]))
    assert failure_lines(recorder.status, evidence=2)[1:] == ["  48", "  49"]


def test_a_directory_with_anything_in_it_is_refused(tmp_path: Path) -> None:
    prepare(tmp_path / "new" / "deep")
    prepare(tmp_path / "new" / "deep")
    (tmp_path / "new" / "deep" / "x").touch()
    with pytest.raises(InputError) as caught:
        prepare(tmp_path / "new" / "deep")
    assert caught.value.code == "SB-OUT-NOT-EMPTY"
    with pytest.raises(InputError) as caught:
        prepare(tmp_path / "new" / "deep" / "x")
    assert caught.value.code == "SB-OUT-FOLDER"


def test_a_closed_stream_ends_nothing() -> None:
    text = io.StringIO()
    text.close()
    Console(text, {}).say("one")


def test_lines_that_nobody_reads_end_nothing() -> None:
    pipe = ClosedPipe()
    console = Console(pipe, {})
    console.say("one")
    with console.group("two"):
        console.say("three")
    assert pipe.tries == 1


@pytest.mark.parametrize(
    ("env", "expected"),
    [({}, "== start 0\nline\n"), ({"GITHUB_ACTIONS": "true"}, "::group::start 0\nline\n::endgroup::\n")],
)
def test_groups_are_folded_on_a_runner(env: dict[str, str], expected: str) -> None:
    text = io.StringIO()
    console = Console(text, env)
    with console.group("start 0"):
        console.say("line")
    assert text.getvalue() == expected


def test_events_are_lines_of_json(tmp_path: Path) -> None:
    recorder, _ = _recorder(tmp_path)
    recorder.event("kind", text="ü\nzwei", number=1)
    [line] = (tmp_path / "events.jsonl").read_text(encoding="utf-8").splitlines()
    event = json.loads(line)
    assert event.pop("time_ns") > 0
    assert event == {"event": "kind", "text": "ü\nzwei", "number": 1}
    assert (tmp_path / "events.jsonl").stat().st_uid == os.getuid()

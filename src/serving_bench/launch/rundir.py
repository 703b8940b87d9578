"""The run directory's own records: status.json, events.jsonl, processes.json."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

from serving_bench.contracts import Outcome, RunStatus, Stage
from serving_bench.errors import InputError, InterruptedRunError, SystemUnderTestError, from_os_error
from serving_bench.files import dump_json, write_atomic, write_model
from serving_bench.gha import Groups, harmless
from serving_bench.launch.environ import masked_argv, masked_env
from serving_bench.process import Child, Identity


def prepare(out: Path) -> None:
    """Make the run directory; ``InputError`` (SB-OUT-NOT-EMPTY) where it holds anything already.

    Files of two runs in one directory would be read as one run.
    """
    try:
        out.mkdir(parents=True, exist_ok=True)
        taken = next(out.iterdir(), None)
    except OSError as error:
        raise InputError(f"{out}: cannot be used as run directory: {error.strerror}", code="SB-OUT-FOLDER") from error
    if taken is not None:
        raise InputError(
            f"{out}: holds {taken.name} already", code="SB-OUT-NOT-EMPTY", hint="give a new or empty folder as --out"
        )


class Console:
    """Lines for people. Once nobody reads any more it goes quiet: a closed pipe must not end a teardown."""

    def __init__(self, out: TextIO, env: Mapping[str, str]) -> None:
        self._out = out
        self._env = env
        self._groups = Groups(env, out)
        self._open = True

    def say(self, line: str) -> None:
        self._write(lambda: print(harmless(self._env, line), file=self._out, flush=True))

    @contextmanager
    def group(self, title: str) -> Iterator[None]:
        """Lines in a foldable group on a runner, under a heading elsewhere."""
        self._write(lambda: self._groups.start(title))
        try:
            yield
        finally:
            self._write(self._groups.end)

    def _write(self, write: Callable[[], None]) -> None:
        if self._open:
            try:
                write()
            except (OSError, ValueError):  # a broken pipe; a file that is closed
                self._open = False


class Recorder:
    """Keeps status.json at the truth and the time per stage; writes events."""

    def __init__(self, out: Path, console: Console, clock: Callable[[], float] = time.monotonic) -> None:
        self._out = out
        self._console = console
        self._clock = clock
        self._since = clock()
        self._processes: list[dict[str, Any]] = []
        self._timings: dict[str, float] = {}
        now = time.time_ns()
        self.status = RunStatus(outcome=Outcome.RUNNING, stage=Stage.PLANNED, started_ns=now, updated_ns=now)
        self._write(self.status)

    def stage(self, stage: Stage, note: str = "") -> None:
        """Enter a stage: on stdout, in status.json and in events.jsonl."""
        self._account(self.status.stage)
        self._console.say(f"{stage.value}{': ' + note if note else ''}")
        self.event("stage", stage=stage.value, note=note)
        self._write(self.status.model_copy(update={"stage": stage}))

    def timing(self, name: str, seconds: float) -> None:
        """Add seconds to a named part, beside the stages."""
        self._timings[name] = round(self._timings.get(name, 0.0) + seconds, 3)

    def _account(self, stage: Stage) -> None:
        now = self._clock()
        self.timing(stage.value, now - self._since)
        self._since = now

    def fail(self, error: BaseException) -> None:
        """Write how the run ended, with the stage it was in; the teardown comes after it.

        The first end is the run's end; what goes wrong in its teardown is an event.
        """
        if self.status.outcome is not Outcome.RUNNING:
            self.event("after-the-end", message=f"{type(error).__name__}: {error}")
            return
        self._account(self.status.stage)
        self._write(self.status.model_copy(update=_ending(error)))
        self.event("end", outcome=self.status.outcome.value, code=self.status.code, message=self.status.message)

    def finish(self, *, stopping_s: float) -> None:
        """Write the final status: passed if nothing else was said before."""
        update: dict[str, Any] = {}
        if self.status.outcome is not Outcome.RUNNING:
            self.timing(Stage.STOPPING.value, stopping_s)
        else:
            self._account(self.status.stage)
            update = {"outcome": Outcome.PASSED, "stage": Stage.DONE}
            self.event("end", outcome=Outcome.PASSED.value)
        self._write(self.status.model_copy(update=update))

    def _write(self, status: RunStatus) -> None:
        self.status = status.model_copy(update={"updated_ns": time.time_ns(), "timings_s": dict(self._timings)})
        write_model(self._out / "status.json", self.status)

    def event(self, kind: str, **fields: Any) -> None:
        """Append a line to events.jsonl."""
        line = json.dumps({"time_ns": time.time_ns(), "event": kind, **fields}, ensure_ascii=False)
        try:
            with (self._out / "events.jsonl").open("a", encoding="utf-8", errors="backslashreplace") as events:
                events.write(line + "\n")
        except OSError as error:
            raise from_os_error(error) from error

    def started(self, child: Child, env: dict[str, str]) -> None:
        """Record a process that was started: in events.jsonl, and in processes.json for a later sweep."""
        argv = masked_argv(child.argv)
        self.event("start", process=child.name, pid=child.pid, argv=argv, env=masked_env(env))
        self._processes.append({"name": child.name, **child.identity.as_dict(), "argv": argv})
        self._write_processes()

    def launcher(self, identity: Identity | None, scratch: Path) -> None:
        """Record who runs this run, and the folder to remove if it cannot."""
        if identity is not None:
            self._processes.append({"name": "launch", **identity.as_dict(), "scratch": str(scratch)})
            self._write_processes()

    def _write_processes(self) -> None:
        write_atomic(self._out / "processes.json", dump_json(self._processes))


def _ending(error: BaseException) -> dict[str, Any]:
    """Fields of the status that say how the run ended."""
    if isinstance(error, InterruptedRunError):
        return {
            "outcome": Outcome.INTERRUPTED,
            "code": error.code,
            "message": error.message,
            "signal": error.signal_number,
            "retriable": True,
        }
    failed = {"outcome": Outcome.FAILED}
    if isinstance(error, SystemUnderTestError):
        return failed | {
            "code": error.code,
            "message": error.message,
            "hint": error.hint,
            "evidence": error.evidence,
            "retriable": error.retriable,
        }
    if isinstance(error, OSError):
        error = from_os_error(error)
    if isinstance(error, InputError):
        return failed | {"code": error.code, "message": error.message, "hint": error.hint}
    return failed | {"code": "SB-BUG", "message": f"{type(error).__name__}: {error}"}


def failure_lines(status: RunStatus, evidence: int = 12) -> list[str]:
    """How a run ended, for stderr: what and where, the log lines that explain it, and what may help."""
    if status.outcome is Outcome.PASSED:
        return []
    lines = [f"{status.outcome.value} while {status.stage.value}: {status.message} [{status.code}]"]
    lines += [f"  {line}" for line in _tail(status.evidence, evidence)]
    return lines if status.hint is None else [*lines, f"hint: {status.hint}"]


def _tail(lines: Sequence[str], count: int) -> Sequence[str]:
    return lines[-count:]

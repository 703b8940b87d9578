"""One root for everything that goes wrong in a known way.

Each leaf has a stable code (``SB-…``), the exit status of the command and,
where there is one, a hint. The text is written for one or two lines on stderr.
Anything that is not a ``ServingBenchError`` is a bug in the toolkit: the
command line turns it into exit status 3.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import ClassVar


class Exit(IntEnum):
    """Exit statuses of the ``serving-bench`` command."""

    DONE = 0
    FAILED = 1
    USAGE = 2
    BUG = 3
    GATE = 4
    SIGHUP = 129
    SIGINT = 130
    SIGTERM = 143


class ServingBenchError(Exception):
    """A known failure: ``code`` is stable, ``hint`` says what to do about it."""

    exit_status: ClassVar[Exit] = Exit.FAILED

    def __init__(self, message: str, *, code: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.hint = hint

    def lines(self) -> list[str]:
        """The error as one line, and the hint as a second one where there is one."""
        text = [f"{self.message} [{self.code}]"]
        return [*text, f"hint: {self.hint}"] if self.hint else text


class UsageError(ServingBenchError):
    """The command was called wrongly."""

    exit_status = Exit.USAGE


class InputError(ServingBenchError):
    """A file or value that the user gave cannot be used."""


def from_os_error(error: OSError) -> InputError:
    """What the operating system refused, where no closer error knows better: a full disk, a missing right."""
    where = f"{os.fsdecode(error.filename)}: " if isinstance(error.filename, str | bytes) else ""
    return InputError(
        f"{where}{error.strerror or error}", code="SB-OS", hint="is there room, and may this user read and write here?"
    )


class SystemUnderTestError(ServingBenchError):
    """An engine, router or load generator failed, or the host cannot run them.

    ``evidence`` holds the last lines of the log that explains it; ``retriable``
    says whether the same plan may pass when it is simply started again.
    """

    def __init__(
        self,
        message: str,
        *,
        code: str,
        hint: str | None = None,
        evidence: Sequence[str] = (),
        retriable: bool = False,
    ) -> None:
        super().__init__(message, code=code, hint=hint)
        self.evidence = tuple(evidence)
        self.retriable = retriable


class GateError(ServingBenchError):
    """A gate (validity, SLO, regression) said no."""

    exit_status = Exit.GATE


class InterruptedRunError(ServingBenchError):
    """The run was cancelled by a signal; the exit status is 128 + its number."""

    def __init__(self, message: str, *, signal_number: int) -> None:
        super().__init__(message, code="SB-INTERRUPTED")
        self.signal_number = signal_number


@dataclass(frozen=True, order=True)
class Problem:
    """One thing wrong in one place; line and column count from 1.

    Line 0: ``path`` is no file but what stands in its place, such as a flag of the command line.
    """

    path: str
    line: int
    column: int
    key: str
    message: str
    code: str
    severity: str = "error"

    def text(self) -> str:
        """The problem in the form that compilers and editors know."""
        place = f"{self.path}:{self.line}:{self.column}" if self.line else self.path
        key = f"{self.key}: " if self.key else ""
        return f"{place}: {key}{self.message} [{self.code}]"


class ConfigError(ServingBenchError):
    """All problems of all files that were looked at, sorted by place."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(sorted(problems))
        first = self.problems[0]
        super().__init__(first.text(), code=first.code)

    def lines(self) -> list[str]:
        return [problem.text() for problem in self.problems]

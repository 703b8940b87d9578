"""Reading the logs of engines and routers: tails as evidence, known failures."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

_TAIL_BYTES = 64 * 1024
_SEQUENCES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b\n]*(?:\x07|\x1b\\)?|[@-Z\\^_])")
"""What steers a terminal: colours and cursor (CSI), titles and links (OSC), single characters."""
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f]")
_IN_USE = re.compile(r"address (?:is )?already in use|EADDRINUSE|errno 98\b|os error 98\b", re.IGNORECASE)
_LINE_CHARS = 500
_PIECE_BYTES = 1024 * 1024
_LOOK_BYTES = 16 * _PIECE_BYTES
"""A log that grows faster than it is read must not keep the launcher from its other duties."""


def _clean(raw: bytes) -> str:
    return _CONTROL.sub("", _SEQUENCES.sub("", raw.decode("utf-8", errors="replace")))


def tail(path: Path, lines: int = 20, *, start: int = 0) -> tuple[str, ...]:
    """The last lines of the part of a log from ``start`` on; long lines are cut, colours removed."""
    try:
        with path.open("rb") as log:
            size = log.seek(0, 2)
            log.seek(max(start, size - _TAIL_BYTES))
            text = _clean(log.read())
    except FileNotFoundError:
        return (f"{path.name}: no such log",)
    kept = [line[:_LINE_CHARS] for line in text.splitlines() if line.strip()]
    return tuple(kept[-lines:]) or (f"{path.name}: empty",)


def _lines(path: Path, start: int) -> Iterable[str]:
    with path.open("rb") as log:
        log.seek(start)
        # A line that never ends (a progress bar, binary garbage) is looked at in pieces.
        while raw := log.readline(_PIECE_BYTES):
            yield _clean(raw)


class PortConflicts:
    """Looks for lines that report an address in use in a log that grows; reads every line once."""

    def __init__(self, path: Path, start: int = 0) -> None:
        self._path = path
        self._offset = start

    def look(self, *, ended: bool = False) -> str | None:
        """The first such line that is new since the last look; a line that is still being written waits.

        ``ended``: nothing more is written, so the last line counts without its newline.
        """
        end = self._offset + _LOOK_BYTES
        with suppress(FileNotFoundError), self._path.open("rb") as log:
            log.seek(self._offset)
            while (ended or self._offset < end) and (raw := log.readline(_PIECE_BYTES)):
                if not ended and not raw.endswith(b"\n") and len(raw) < _PIECE_BYTES:
                    break
                self._offset += len(raw)
                if _IN_USE.search(line := _clean(raw)):
                    return line.strip()[:_LINE_CHARS]
        return None


def missing_patterns(path: Path, patterns: Sequence[str], *, start: int = 0) -> tuple[str, ...]:
    """The regular expressions that no line of the log matches."""
    wanted = {pattern: re.compile(pattern) for pattern in patterns}
    for line in _lines(path, start) if wanted else ():
        wanted = {pattern: rule for pattern, rule in wanted.items() if not rule.search(line)}
    return tuple(wanted)


def traceback_lines(path: Path, *, start: int = 0, limit: int = 20) -> tuple[str, ...]:
    """The first Python traceback in a log, cut after ``limit`` lines; empty if there is none."""
    found: list[str] = []
    for line in _lines(path, start):
        if found or "Traceback (most recent call last)" in line:
            found.append(line.rstrip()[:_LINE_CHARS])
        if len(found) == limit:
            break
    return tuple(found)

"""A line every so often while something long is waited for."""

from __future__ import annotations

import time
from collections.abc import Callable

from serving_bench.launch.rundir import Console


class Heartbeat:
    """Says what is waited for, every ``interval_s``, with the time since the wait began."""

    def __init__(self, console: Console, interval_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._console = console
        self._interval_s = interval_s
        self._clock = clock
        self.restart()

    def restart(self) -> None:
        self._begun = self._last = self._clock()

    def beat(self, what: Callable[[], str]) -> None:
        now = self._clock()
        if now - self._last >= self._interval_s:
            self._last = now
            self._console.say(f"  … {now - self._begun:.0f} s: {what()}")

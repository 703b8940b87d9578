"""Signals: noted always, acted upon only where the run is ready to be ended.

A handler that raised anywhere could break a teardown half way. So the handler
only notes the first signal and wakes ``sleep``; the run asks ``check`` between
its steps. Long calls that are known to leave nothing half-done are wrapped in
``raising``, in which a signal ends them at once.
"""

from __future__ import annotations

import os
import select
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from serving_bench.errors import InterruptedRunError

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Cancel:
    """The cancel state of one run; made and used in the main thread."""

    def __init__(self) -> None:
        self.number: int | None = None
        self._raising = False
        self._read, self._write = os.pipe()
        os.set_blocking(self._write, False)

    @contextmanager
    def installed(self) -> Iterator[Cancel]:
        """Handle INT, TERM and HUP inside; the handlers before are put back at the end.

        After a cancel they are not: the process is about to exit with the status
        that says so, and further signals are ignored so that it can.
        """
        before = {number: signal.signal(number, self._note) for number in SIGNALS}
        try:
            yield self
        finally:
            for number, handler in before.items():
                # None: the handler was not set from Python and cannot be put back from it
                restored = handler if handler is not None else signal.SIG_DFL
                signal.signal(number, restored if self.number is None else signal.SIG_IGN)
            os.close(self._read)
            os.close(self._write)

    def _note(self, number: int, _frame: FrameType | None) -> None:
        if self.number is not None:  # a second one changes nothing: the first is being obeyed
            return
        self.number = number
        os.write(self._write, b"!")
        if self._raising:
            self._raising = False
            self.check()

    def check(self) -> None:
        """Raise ``InterruptedRunError`` if a signal came."""
        if self.number is not None:
            name = signal.Signals(self.number).name
            raise InterruptedRunError(f"cancelled by {name}", signal_number=self.number)

    def sleep(self, seconds: float) -> None:
        """Sleep, but no longer than until a signal comes; then raise."""
        self.check()
        select.select([self._read], [], [], seconds)
        self.check()

    @contextmanager
    def raising(self) -> Iterator[None]:
        """A signal raises ``InterruptedRunError`` in the middle of the block."""
        self._raising = True
        try:
            self.check()
            yield
        finally:
            self._raising = False

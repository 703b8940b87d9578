"""Signals to this very process."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator

import pytest

from serving_bench.errors import InterruptedRunError
from serving_bench.launch.cancel import SIGNALS, Cancel


@pytest.fixture(autouse=True)
def _handlers() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in SIGNALS}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def _later(number: signal.Signals, seconds: float = 0.2) -> None:
    threading.Timer(seconds, os.kill, (os.getpid(), number)).start()


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_is_noted_and_raised_where_it_is_asked_for(number: signal.Signals) -> None:
    with Cancel().installed() as cancel:
        cancel.check()
        os.kill(os.getpid(), number)
        assert cancel.number == number
        with pytest.raises(InterruptedRunError, match=f"cancelled by {number.name}") as caught:
            cancel.check()
        assert caught.value.signal_number == number


def test_a_sleep_ends_with_the_signal() -> None:
    with Cancel().installed() as cancel:
        _later(signal.SIGTERM)
        begun = time.monotonic()
        with pytest.raises(InterruptedRunError):
            cancel.sleep(30)
        assert time.monotonic() - begun < 5


def test_a_sleep_without_a_signal_is_a_sleep() -> None:
    with Cancel().installed() as cancel:
        begun = time.monotonic()
        cancel.sleep(0.1)
        assert time.monotonic() - begun >= 0.1


def test_long_calls_are_ended_inside_raising_and_nothing_is_raised_outside() -> None:
    with Cancel().installed() as cancel:
        _later(signal.SIGINT)
        begun = time.monotonic()
        with pytest.raises(InterruptedRunError), cancel.raising():
            time.sleep(30)
        assert time.monotonic() - begun < 5
        time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGTERM)  # raises nothing here
        assert cancel.number == signal.SIGINT, "the first one counts"


def test_raising_starts_with_what_came_before() -> None:
    with Cancel().installed() as cancel:
        os.kill(os.getpid(), signal.SIGHUP)
        with pytest.raises(InterruptedRunError), cancel.raising():
            pytest.fail("the block must not run")


def test_handlers_are_put_back_after_a_run_and_signals_ignored_after_a_cancelled_one() -> None:
    before = [signal.getsignal(number) for number in SIGNALS]
    with Cancel().installed():
        assert [signal.getsignal(number) for number in SIGNALS] != before
    assert [signal.getsignal(number) for number in SIGNALS] == before
    with Cancel().installed():
        os.kill(os.getpid(), signal.SIGTERM)
    assert [signal.getsignal(number) for number in SIGNALS] == [signal.SIG_IGN] * 3
    os.kill(os.getpid(), signal.SIGTERM)  # ends nothing

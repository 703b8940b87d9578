"""When a request to the Hub is tried again, and after how long."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TypeVar

import httpx2
from huggingface_hub.errors import HfHubHTTPError
from huggingface_hub.utils import parse_ratelimit_headers

T = TypeVar("T")

BACKOFF_S = (1.0, 2.0, 4.0, 8.0)
"""Waits between tries that bring nothing; as many retries as there are entries."""
LONGEST_WAIT_S = 120.0
"""Longest wait that a server may ask for; beyond it the command says so instead of sleeping."""

_TEMPORARY = frozenset({408, 416, 429, 500, 502, 503, 504})
"""416 belongs to a resumed download whose beginning was thrown away."""


class TooSlowError(httpx2.ReadTimeout):
    """So little comes that it is no progress."""


def is_temporary(error: Exception) -> bool:
    """Whether the same request may go through later."""
    if isinstance(error, HfHubHTTPError):
        return error.response.status_code in _TEMPORARY
    return isinstance(error, httpx2.TransportError) and not isinstance(error, httpx2.ProxyError)


def wait_s(error: Exception, retry: int, now: datetime) -> float | None:
    """Seconds before retry number ``retry`` (from 0); None where there should be none."""
    if not is_temporary(error) or retry >= len(BACKOFF_S):
        return None
    asked = asked_s(error, now)
    if asked is None:
        return BACKOFF_S[retry]
    return asked if asked <= LONGEST_WAIT_S else None


def asked_s(error: Exception, now: datetime) -> float | None:
    """Wait that an answer asks for, by ``Retry-After`` (seconds or a date) or the Hub's ``ratelimit`` header."""
    if not isinstance(error, HfHubHTTPError):
        return None
    text = error.response.headers.get("retry-after", "").strip()
    if text.isdecimal():
        return float(text)
    if text:
        try:
            return max(0.0, (parsedate_to_datetime(text) - now).total_seconds())
        except (TypeError, ValueError):
            return None
    limit = parse_ratelimit_headers(error.response.headers)
    return float(limit.reset_in_seconds) if limit is not None and limit.remaining == 0 else None


def patiently(work: Callable[[], T], there: Callable[[], int], sleep: Callable[[float], None] = time.sleep) -> T:
    """Do the work, again after a temporary failure; a try after which more is ``there`` starts the count anew."""
    retry, before = 0, there()
    while True:
        try:
            return work()
        except Exception as error:
            now_there = there()
            moved = now_there > before and not isinstance(error, TooSlowError)
            retry, before = (0 if moved else retry), now_there
            wait = wait_s(error, retry, datetime.now(UTC))
            if wait is None:
                raise
            retry += 1
            sleep(wait)

"""Small HTTP requests to servers on this host: health, metrics, one completion.

The runner's proxy settings are ignored: what is asked is on loopback.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import requests

_OK = 200


@dataclass(frozen=True)
class Reply:
    """Status and body of an answer; status 0 when there was none, with the reason as body."""

    status: int
    body: str

    @property
    def ok(self) -> bool:
        return self.status == _OK

    def json(self) -> Any:
        """The body as JSON, or None if it is not JSON."""
        try:
            return json.loads(self.body)
        except ValueError:
            return None


def get(url: str, *, timeout_s: float) -> Reply:
    """GET; a server that does not answer in time gives status 0, not an exception."""
    return _send("GET", url, None, timeout_s)


def post_json(url: str, payload: dict[str, Any], *, timeout_s: float) -> Reply:
    """POST a JSON object; otherwise like ``get``."""
    return _send("POST", url, payload, timeout_s)


def _send(method: str, url: str, payload: dict[str, Any] | None, timeout_s: float) -> Reply:
    with requests.Session() as session:
        session.trust_env = False
        try:
            answer = session.request(method, url, json=payload, timeout=timeout_s, allow_redirects=False)
        except requests.RequestException as error:
            return Reply(0, f"{type(error).__name__}: {error}")
        answer.encoding = "utf-8"
        return Reply(answer.status_code, answer.text)

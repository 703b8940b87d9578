"""What goes wrong with the Hugging Face Hub, in one line each: code, what was asked for, what to do about it.

Nothing of an answer's body, of a signed address or of a header is repeated: a token or a signature could be in it.
"""

from __future__ import annotations

import errno
from dataclasses import dataclass
from datetime import datetime

import httpx2
from huggingface_hub.errors import (
    EntryNotFoundError,
    FileMetadataError,
    GatedRepoError,
    HfHubHTTPError,
    HFValidationError,
    OfflineModeIsEnabled,
    RevisionNotFoundError,
)

from serving_bench.datasets.hub_retry import asked_s
from serving_bench.errors import InputError

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
_TOO_MANY, _SERVER = 429, 500
_TOKEN_HINT = "set HF_TOKEN to a token that may read the repository; on a runner take it from a secret"  # noqa: S105


@dataclass(frozen=True)
class Wanted:
    """A file of a dataset repository, and what it must be where that is known."""

    dataset: str
    """Id in the lock, for messages."""
    repo: str
    revision: str
    file: str
    sha256: str | None = None
    size: int | None = None

    def __str__(self) -> str:
        return f"dataset {self.dataset}: {self.repo}@{self.revision[:12]} {self.file}".rstrip()


@dataclass(frozen=True)
class _Known:
    """A kind of failure: ``{wanted}``, ``{dataset}``, ``{kind}`` and ``{status}`` are filled in."""

    code: str
    message: str
    hint: str


_WHERE = "check HF_ENDPOINT and the proxy settings"

_BY_TYPE: tuple[tuple[type[Exception], _Known], ...] = (
    (
        OfflineModeIsEnabled,
        _Known(
            "OFFLINE",
            "{wanted} is not in the cache, and HF_HUB_OFFLINE forbids the network",
            "run `serving-bench fetch` once without HF_HUB_OFFLINE, with the same HF_HOME",
        ),
    ),
    (HFValidationError, _Known("REPO", "{wanted}: not a repository's name", "a name is organisation/name")),
    (FileMetadataError, _Known("ANSWER", "{wanted}: the answer does not come from a Hugging Face Hub", _WHERE)),
    (
        GatedRepoError,
        _Known(
            "GATED",
            "{wanted}: the repository is gated (HTTP {status})",
            f"ask for access on the repository's page, then {_TOKEN_HINT}",
        ),
    ),
    (
        RevisionNotFoundError,
        _Known(
            "REVISION",
            "{wanted}: the repository has no such revision",
            "`serving-bench fetch --update {dataset}` locks the current one",
        ),
    ),
    (EntryNotFoundError, _Known("FILE", "{wanted}: no such file at this revision", "correct file in the lock")),
    (
        httpx2.RequestError,
        _Known(
            "NETWORK",
            "{wanted}: no connection to the Hub ({kind})",
            f"check the network, then {_WHERE}; what was loaded is kept for the next try",
        ),
    ),
)
"""The first type that fits counts."""

_NO_ACCESS = _Known(
    "ACCESS", "{wanted}: no access, or no such repository (HTTP {status})", f"check the name, and {_TOKEN_HINT}"
)
_BY_STATUS = {
    401: _NO_ACCESS,
    403: _NO_ACCESS,
    404: _Known(
        "REPO", "{wanted}: no such dataset repository", f"check the name; if the repository is private, {_TOKEN_HINT}"
    ),
}
_UNWELL = _Known("SERVER", "{wanted}: the Hub is unwell (HTTP {status})", "try again later")
_STRANGE = _Known("ANSWER", "{wanted}: the Hub answered HTTP {status}", _WHERE)


def explain(error: Exception, wanted: Wanted, now: datetime) -> InputError | None:
    """The coded error, or None for what is no failure of the Hub, the network or the disk."""
    status = error.response.status_code if isinstance(error, HfHubHTTPError) else 0
    if status == _TOO_MANY:
        return _rate_limited(error, wanted, now)
    known = next((known for kind, known in _BY_TYPE if isinstance(error, kind)), None)
    if known is None and status:
        known = _BY_STATUS.get(status) or (_UNWELL if status >= _SERVER else _STRANGE)
    if known is None:
        return _disk_error(error, wanted) if isinstance(error, OSError) else None
    values = {"wanted": wanted, "dataset": wanted.dataset, "kind": type(error).__name__, "status": status}
    return _error(known.message.format(**values), known.code, known.hint.format(**values))


def _rate_limited(error: Exception, wanted: Wanted, now: datetime) -> InputError:
    asked = asked_s(error, now)
    told = f" and asks to wait {asked:.0f} s" if asked is not None else ""
    return _error(f"{wanted}: the Hub limits requests (HTTP 429){told}", "RATE-LIMIT", f"wait, or {_TOKEN_HINT}")


def _disk_error(error: OSError, wanted: Wanted) -> InputError:
    if error.errno in _FULL:
        return disk_full(wanted)
    hint = "set HF_HOME, or give --cache, to a folder that this user may write"
    return _error(f"{wanted}: the cache cannot be used: {error.strerror or type(error).__name__}", "CACHE", hint)


def disk_full(wanted: Wanted, needed: int | None = None, free: int | None = None) -> InputError:
    """The cache's disk has no room for the file."""
    sizes = f": {needed:,} bytes needed, {free:,} free" if needed is not None and free is not None else ""
    hint = "make room, or set HF_HOME, or give --cache, to a folder on another disk"
    return _error(f"{wanted}: the disk of the cache is full{sizes}", "DISK", hint)


def other_content(wanted: Wanted, what: str, found: str, locked: str, hint: str | None = None) -> InputError:
    """The file is not what the lock says; ``what`` is its sha256 or its size."""
    usual = f"if the change is meant: `serving-bench fetch --update {wanted.dataset}`"
    return _error(f"{wanted}: {what} is {found}, the lock says {locked}", "DIGEST", hint or usual)


def other_commit(wanted: Wanted, commit: str) -> InputError:
    """The Hub took the revision for something else than a commit."""
    return _error(f"{wanted}: the Hub answered for commit {commit[:12]}", "REVISION", "lock the commit's 40 hex digits")


def wrong_name(wanted: Wanted) -> InputError:
    """The file's name would lead out of the cache."""
    return _error(f"{wanted}: not the path of a file in a repository", "FILE", "correct file in the lock")


def _error(message: str, code: str, hint: str) -> InputError:
    return InputError(message, code=f"SB-HUB-{code}", hint=hint)

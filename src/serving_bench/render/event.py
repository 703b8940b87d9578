"""The event that started a workflow, as far as the label policy looks at it.

Read by hand: a model of it would cost every start of the command its building.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from serving_bench.errors import InputError

ASKED_FOR = frozenset({"workflow_dispatch", "repository_dispatch", "schedule", "merge_group"})
"""Events that carry no label and are themselves the request to run."""


@dataclass(frozen=True)
class PullRequest:
    """An event of a pull request; ``label`` is the one that the action set."""

    action: str
    labels: tuple[str, ...]
    head_sha: str
    fork: bool
    label: str | None = None
    sender: str | None = None


@dataclass(frozen=True)
class Push:
    """A push; the message is the head commit's."""

    message: str


@dataclass(frozen=True)
class Asked:
    """An event that is itself the request to run."""

    name: str


@dataclass(frozen=True)
class Other:
    """An event that says nothing about sweeps."""

    name: str


def read_event(data: Any, name: str) -> PullRequest | Push | Asked | Other:
    """The event from its JSON and its name; where the name is empty, from the form of the JSON.

    Raises ``InputError`` (SB-EVENT) where the JSON is not what GitHub sends.
    """
    keys = data.keys() if isinstance(data, dict) else ()
    name = name or ("pull_request" if "pull_request" in keys else "push" if "head_commit" in keys else "")
    if not name or not keys:
        raise _refused("neither GITHUB_EVENT_NAME nor the file says what kind of event it is")
    if name in ("pull_request", "pull_request_target"):
        return _pull_request(data)
    if name == "push":
        commit = data.get("head_commit", "")
        return Other("deleting a branch") if commit is None else Push(_text(data, "head_commit", "message"))
    return Asked(name) if name in ASKED_FOR else Other(name)


def _pull_request(data: Any) -> PullRequest:
    sha = _text(data, "pull_request", "head", "sha")
    if not re.fullmatch(r"[0-9a-f]{40}([0-9a-f]{24})?", sha):
        raise _refused("pull_request.head.sha is no SHA")
    labels = _at(data, "pull_request", "labels")
    if not isinstance(labels, list):
        raise _refused("pull_request.labels is no list")
    return PullRequest(
        action=_text(data, "action"),
        labels=tuple(_text(label, "name") for label in labels),
        head_sha=sha,
        fork=_is_fork(data),
        label=_text(data, "label", "name") if data.get("label") is not None else None,
        sender=_text(data, "sender", "login") if data.get("sender") is not None else None,
    )


def _is_fork(data: Any) -> bool:
    """Also where the fork has been deleted since: then its head has no repository."""
    base = _text(data, "pull_request", "base", "repo", "full_name")
    repo = _at(data, "pull_request", "head", "repo")
    return repo is None or _text(repo, "full_name") != base


def _at(data: Any, *path: str) -> Any:
    """The value at a path of keys; SB-EVENT where one of them is missing."""
    value = data
    for key in path:
        if not isinstance(value, dict) or key not in value:
            raise _refused(f"{'.'.join(path)} is missing")
        value = value[key]
    return value


def _text(data: Any, *path: str) -> str:
    value = _at(data, *path)
    if not isinstance(value, str):
        raise _refused(f"{'.'.join(path)} is no string")
    return value


def _refused(reason: str) -> InputError:
    return InputError(
        f"not an event as GitHub sends it: {reason}",
        code="SB-EVENT",
        hint="give the file that GITHUB_EVENT_PATH names on a runner",
    )

"""The event that started a workflow, as far as the label policy looks at it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

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


class _Part(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True, defer_build=True)


class _Named(_Part):
    name: Annotated[str, Field(max_length=1000)]


class _Repository(_Part):
    full_name: str


class _Head(_Part):
    sha: Annotated[str, Field(pattern=r"^[0-9a-f]{40}([0-9a-f]{24})?$")]
    repo: _Repository | None
    """None where the fork has been deleted."""


class _Base(_Part):
    repo: _Repository


class _PullRequest(_Part):
    labels: list[_Named]
    head: _Head
    base: _Base


class _Sender(_Part):
    login: str


class _PullRequestEvent(_Part):
    action: str
    pull_request: _PullRequest
    label: _Named | None = None
    sender: _Sender | None = None


class _Commit(_Part):
    message: str


class _PushEvent(_Part):
    head_commit: _Commit | None
    """None where a branch was deleted."""


def read_event(data: Any, name: str) -> PullRequest | Push | Asked | Other:
    """The event from its JSON and its name; where the name is empty, from the form of the JSON.

    Raises ``InputError`` (SB-EVENT) where the JSON is not what GitHub sends.
    """
    keys = data.keys() if isinstance(data, dict) else ()
    name = name or ("pull_request" if "pull_request" in keys else "push" if "head_commit" in keys else "")
    if not name or not keys:
        raise _refused(name, "what kind of event it is, neither GITHUB_EVENT_NAME nor the file says")
    try:
        if name in ("pull_request", "pull_request_target"):
            return _pull_request(_PullRequestEvent.model_validate(data))
        if name == "push":
            commit = _PushEvent.model_validate(data).head_commit
            return Push(commit.message) if commit else Other("deleting a branch")
    except ValidationError as error:
        first = error.errors()[0]
        raise _refused(name, f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from error
    return Asked(name) if name in ASKED_FOR else Other(name)


def _pull_request(event: _PullRequestEvent) -> PullRequest:
    head, base = event.pull_request.head, event.pull_request.base
    return PullRequest(
        action=event.action,
        labels=tuple(label.name for label in event.pull_request.labels),
        head_sha=head.sha,
        fork=head.repo is None or head.repo.full_name != base.repo.full_name,
        label=event.label.name if event.label else None,
        sender=event.sender.login if event.sender else None,
    )


def _refused(name: str, reason: str) -> InputError:
    return InputError(
        f"not an event{f' {name}' if name else ''} as GitHub sends it: {reason}",
        code="SB-EVENT",
        hint="give the file that GITHUB_EVENT_PATH names on a runner",
    )

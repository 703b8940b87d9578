from __future__ import annotations

from typing import Any

import pytest

from serving_bench.errors import InputError
from serving_bench.render.event import Asked, Other, PullRequest, Push, read_event

SHA = "0123456789abcdef0123456789abcdef01234567"


def payload(**changes: Any) -> dict[str, Any]:
    """The parts of GitHub's pull_request event that matter, and one that does not."""
    pull = {
        "number": 7,
        "labels": [{"id": 1, "name": "full-sweep-enabled", "color": "fff"}],
        "head": {"sha": SHA, "ref": "work", "repo": {"full_name": "org/repo"}},
        "base": {"sha": "f" * 40, "ref": "main", "repo": {"full_name": "org/repo"}},
    }
    event = {"action": "labeled", "label": {"name": "full-sweep-enabled"}, "sender": {"login": "m"}}
    return {"pull_request": pull | changes, **event}


@pytest.mark.parametrize("name", ["pull_request", "pull_request_target", ""])
def test_a_pull_request(name: str) -> None:
    found = read_event(payload(), name)
    assert found == PullRequest("labeled", ("full-sweep-enabled",), SHA, False, "full-sweep-enabled", "m")


@pytest.mark.parametrize("repo", [{"full_name": "someone/repo"}, None])
def test_a_pull_request_from_a_fork_also_when_it_is_gone(repo: Any) -> None:
    found = read_event(payload(head={"sha": SHA, "repo": repo}), "pull_request")
    assert isinstance(found, PullRequest)
    assert found.fork


def test_other_events() -> None:
    assert read_event({"head_commit": {"message": "m"}}, "push") == Push("m")
    assert read_event({"head_commit": {"message": "m"}}, "") == Push("m")
    assert read_event({"head_commit": None}, "push") == Other("deleting a branch")
    assert read_event({"inputs": None}, "workflow_dispatch") == Asked("workflow_dispatch")
    assert read_event({"schedule": "0 0 * * *"}, "schedule") == Asked("schedule")
    assert read_event({"pull_request": {}}, "pull_request_review") == Other("pull_request_review")
    assert read_event({"workflow_run": {}}, "workflow_run") == Other("workflow_run")


@pytest.mark.parametrize(
    ("data", "name"),
    [
        (payload(head={"sha": "--output=x", "repo": None}), "pull_request"),
        (payload(labels="full-sweep-enabled"), "pull_request"),
        ({"action": "labeled"}, "pull_request"),
        ({"head_commit": {}}, "push"),
        ({"inputs": {}}, ""),
        ([], "pull_request"),
        ("text", "push"),
        ({}, "pull_request"),
    ],
)
def test_what_github_does_not_send(data: Any, name: str) -> None:
    with pytest.raises(InputError) as caught:
        read_event(data, name)
    assert caught.value.code == "SB-EVENT"

from __future__ import annotations

import itertools

import pytest

from serving_bench.cli import build_parser
from serving_bench.contracts import Mode
from serving_bench.render.event import PullRequest
from serving_bench.render.labels import (
    MODIFIERS,
    PERMISSIONS,
    PRIMARIES,
    SETTERS,
    Sweep,
    decide,
    of_labels,
    table,
    unless_skipped,
)

from .conftest import ROOT

SHA = "0123456789abcdef0123456789abcdef01234567"


def event(*labels: str, action: str = "synchronize", fork: bool = False, label: str | None = None) -> PullRequest:
    return PullRequest(action, labels, SHA, fork, label, sender="someone")


@pytest.mark.parametrize(
    ("label", "canary", "fail_fast"),
    [
        ("full-sweep-fail-fast", True, True),
        ("full-sweep-enabled", True, False),
        ("non-canary-full-sweep-enabled", False, False),
    ],
)
def test_each_primary(label: str, canary: bool, fail_fast: bool) -> None:
    sweep = of_labels(["documentation", label])
    assert sweep.runs
    assert (sweep.canary, sweep.fail_fast) == (canary, fail_fast)
    assert (sweep.mode, sweep.fast) == (Mode.PERFORMANCE, False)
    assert label in sweep.message


@pytest.mark.parametrize(
    ("modifiers", "mode", "fast"),
    [
        (["all-evals"], Mode.BOTH, False),
        (["evals-only"], Mode.EVALS, False),
        (["agentx-fast"], Mode.PERFORMANCE, True),
        (["agentx-fast", "all-evals"], Mode.BOTH, True),
    ],
)
def test_each_modifier_beside_a_primary(modifiers: list[str], mode: Mode, fast: bool) -> None:
    sweep = of_labels(["full-sweep-enabled", *modifiers])
    assert sweep.runs
    assert (sweep.mode, sweep.fast, sweep.canary) == (mode, fast, True)


@pytest.mark.parametrize(
    ("labels", "code", "named"),
    [
        ([], "SB-SWEEP-NO-LABEL", ["full-sweep-fail-fast", "full-sweep-enabled", "non-canary-full-sweep-enabled"]),
        (["bug"], "SB-SWEEP-NO-LABEL", ["full-sweep-enabled"]),
        (["full-sweep-enabled", "full-sweep-fail-fast"], "SB-SWEEP-TWO-PRIMARIES", ["leave one"]),
        (["agentx-fast"], "SB-SWEEP-MODIFIER", ["agentx-fast needs", "full-sweep-enabled"]),
        (["full-sweep-enabled", "all-evals", "evals-only"], "SB-SWEEP-TWO-MODES", ["all-evals and evals-only"]),
    ],
)
def test_what_runs_nothing_says_what_to_do(labels: list[str], code: str, named: list[str]) -> None:
    sweep = of_labels(labels)
    assert not sweep.runs
    assert sweep.code == code
    assert all(text in sweep.message for text in named), sweep.message


def test_every_set_of_labels_runs_or_says_why_not() -> None:
    names = [entry.name for entry in (*PRIMARIES, *MODIFIERS)]
    for chosen in itertools.product([False, True], repeat=len(names)):
        labels = [name for name, on in zip(names, chosen, strict=True) if on]
        sweep = of_labels(labels)
        assert sweep.runs == (sum(chosen[:3]) == 1 and not (chosen[3] and chosen[4])), labels
        assert sweep.message


def test_case_does_not_matter_to_github_nor_here() -> None:
    assert of_labels(["Full-Sweep-Enabled"]).runs


@pytest.mark.parametrize("action", ["opened", "reopened", "synchronize", "ready_for_review"])
def test_labels_of_a_branch_count_again(action: str) -> None:
    sweep = decide(event("full-sweep-enabled", action=action))
    assert (sweep.runs, sweep.head_sha, sweep.pinned) == (True, SHA, False)


@pytest.mark.parametrize("action", ["unlabeled", "closed", "edited", "\n::error::x"])
def test_other_actions_start_nothing(action: str) -> None:
    sweep = decide(event("full-sweep-enabled", action=action))
    assert sweep.code == "SB-SWEEP-ACTION"
    assert "\n" not in sweep.message


def test_setting_another_label_starts_nothing() -> None:
    given = ("full-sweep-enabled", "documentation")
    assert decide(event(*given, action="labeled", label="documentation")).code == "SB-SWEEP-OTHER-LABEL"
    assert decide(event(*given, action="labeled", label="full-sweep-enabled")).runs


@pytest.mark.parametrize("permission", ["write", "maintain", "admin"])
def test_a_maintainers_label_runs_a_fork_at_that_commit(permission: str) -> None:
    sweep = decide(event("full-sweep-enabled", action="labeled", fork=True, label="full-sweep-enabled"), permission)
    assert (sweep.runs, sweep.head_sha, sweep.pinned) == (True, SHA, True)


@pytest.mark.parametrize("permission", [None, "none", "read", "triage"])
def test_nobody_elses_label_runs_a_fork(permission: str | None) -> None:
    sweep = decide(event("full-sweep-enabled", action="labeled", fork=True, label="full-sweep-enabled"), permission)
    assert sweep.code == "SB-SWEEP-PERMISSION"
    assert "'someone'" in sweep.message


@pytest.mark.parametrize("action", ["synchronize", "opened", "reopened", "unlabeled"])
def test_an_earlier_label_does_not_run_a_forks_new_commit(action: str) -> None:
    sweep = decide(event("full-sweep-enabled", action=action, fork=True), "admin")
    assert sweep.code == "SB-SWEEP-FORK"
    assert SHA[:12] in sweep.message


def test_a_label_that_somebody_set_before_changes_nothing_on_a_fork() -> None:
    given = event("evals-only", "full-sweep-fail-fast", action="labeled", fork=True, label="full-sweep-enabled")
    sweep = decide(given, "write")
    assert (sweep.runs, sweep.mode, sweep.fail_fast) == (True, Mode.PERFORMANCE, False)
    modifier = event("full-sweep-enabled", "evals-only", action="labeled", fork=True, label="evals-only")
    assert decide(modifier, "write").code == "SB-SWEEP-MODIFIER"
    other = event("full-sweep-enabled", "bug", action="labeled", fork=True, label="bug")
    assert decide(other, "write").code == "SB-SWEEP-FORK"


def test_the_head_commit_may_skip() -> None:
    sweep = of_labels(["full-sweep-enabled"])
    assert unless_skipped(sweep, "Change a flag\n\nNot worth it. [skip-sweep]\n").code == "SB-SWEEP-SKIPPED"
    assert unless_skipped(sweep, "skip-sweep in words") is sweep
    nothing = Sweep("no", "SB-SWEEP-NO-LABEL")
    assert unless_skipped(nothing, "[skip-sweep]") is nothing


def test_the_document_has_the_table() -> None:
    text = (ROOT / "docs/sweep-labels.md").read_text(encoding="utf-8")
    assert table() in text, "run scripts/docs.py"


def test_the_command_line_knows_the_same_permissions() -> None:
    assert set(PERMISSIONS) > SETTERS
    for permission in PERMISSIONS:
        args = build_parser().parse_args(["render", "--check", "--actor-permission", permission])
        assert args.actor_permission == permission


def test_labels_are_named_in_one_module_only() -> None:
    names = {entry.name for entry in (*PRIMARIES, *MODIFIERS)}
    places = [*(ROOT / "src").rglob("*.py"), *(ROOT / "scripts").iterdir(), *(ROOT / ".github").rglob("*.yml")]
    places += (ROOT / "actions").rglob("action.yml")
    found = {path.name for path in places if path.is_file() and any(name in path.read_text() for name in names)}
    assert found == {"labels.py"}

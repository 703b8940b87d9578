"""Sweep labels: what a label on a pull request makes run. Pure, and the only place that knows.

``PRIMARIES`` and ``MODIFIERS`` are the policy; everything else here reads them.
docs/sweep-labels.md is generated from them, workflows see the outcome in
render's outputs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from serving_bench.contracts import Mode
from serving_bench.render.event import PullRequest

SKIP = "[skip-sweep]"
"""In the message of the head commit: nothing is run."""

FAST_DURATION_S = 1200.0
"""Length of the measured phase under a ``fast`` modifier."""


@dataclass(frozen=True)
class Primary:
    """A label that starts a sweep; exactly one is needed."""

    name: str
    canary: bool
    fail_fast: bool
    meaning: str


@dataclass(frozen=True)
class Modifier:
    """A label that changes the sweep of a primary; ``mode`` None leaves it at load points."""

    name: str
    mode: Mode | None
    fast: bool
    meaning: str


PRIMARIES = (
    Primary(
        "full-sweep-fail-fast",
        canary=True,
        fail_fast=True,
        meaning="the canary first; the first row that fails ends the sweep",
    ),
    Primary(
        "full-sweep-enabled",
        canary=True,
        fail_fast=False,
        meaning="the canary first; a row that fails leaves the others running",
    ),
    Primary(
        "non-canary-full-sweep-enabled",
        canary=False,
        fail_fast=False,
        meaning="all rows at once; a row that fails leaves the others running",
    ),
)
MODIFIERS = (
    Modifier("all-evals", Mode.BOTH, fast=False, meaning="the configs' accuracy benchmarks beside the load points"),
    Modifier("evals-only", Mode.EVALS, fast=False, meaning="the configs' accuracy benchmarks and no load points"),
    Modifier(
        "agentx-fast",
        None,
        fast=True,
        meaning=f"one warm-up request per lane and a phase of {FAST_DURATION_S / 60:g} minutes, a row per concurrency",
    ),
)

FAST_LABEL = next(entry.name for entry in MODIFIERS if entry.fast)

SETTERS = frozenset({"write", "maintain", "admin"})
"""Permissions on the repository with which a label counts on a pull request from a fork."""

PERMISSIONS = ("none", "read", "triage", "write", "maintain", "admin")
"""What GitHub calls the permissions of a person on a repository."""

_RECHECKED = frozenset({"opened", "reopened", "synchronize", "ready_for_review"})
"""Actions of a pull_request event at which labels that were set before count."""

_PRIMARY_NAMES = " or ".join((", ".join(entry.name for entry in PRIMARIES[:-1]), PRIMARIES[-1].name))


@dataclass(frozen=True)
class Sweep:
    """What is to run, or why nothing is: ``code`` is empty when something runs."""

    message: str
    code: str = ""
    canary: bool = False
    fail_fast: bool = False
    mode: Mode = Mode.PERFORMANCE
    fast: bool = False
    head_sha: str | None = None
    """The commit that the decision is about."""
    pinned: bool = False
    """Whether exactly that commit, and no other, may be run."""

    @property
    def runs(self) -> bool:
        return not self.code


def _nothing(code: str, message: str) -> Sweep:
    return Sweep(message, code)


def decide(event: PullRequest, permission: str | None = None) -> Sweep:
    """The sweep that an event of a pull request asks for.

    ``permission`` is what the sender may do in the repository, one of
    ``PERMISSIONS``; the event does not say, so somebody has to ask GitHub. It
    is needed where the pull request comes from a fork.
    """
    decision = _of_fork(event, permission) if event.fork else _of_branch(event)
    return replace(decision, head_sha=event.head_sha, pinned=event.fork) if decision.runs else decision


def _of_branch(event: PullRequest) -> Sweep:
    """On a branch of the repository itself labels stay, and count again for every push."""
    if event.action == "labeled" and not _known(event.label):
        return _nothing("SB-SWEEP-OTHER-LABEL", f"the label {_shown(event.label)} is no sweep label")
    if event.action != "labeled" and event.action not in _RECHECKED:
        return _nothing("SB-SWEEP-ACTION", f"{_shown(event.action)} on a pull request starts no sweep")
    return of_labels(event.labels)


def _of_fork(event: PullRequest, permission: str | None) -> Sweep:
    """On a fork's pull request only the label that this very event set counts, for this very head."""
    if event.action != "labeled" or not _known(event.label):
        return _nothing(
            "SB-SWEEP-FORK",
            "a label on a pull request from a fork counts only for the commit it was set on: "
            f"to run {event.head_sha[:12]}, set {_PRIMARY_NAMES} now",
        )
    if permission is None:
        return _nothing(
            "SB-SWEEP-PERMISSION",
            f"nobody said what {_shown(event.sender)} may do in this repository (--actor-permission), "
            "and on a pull request from a fork only a maintainer's label counts",
        )
    if permission not in SETTERS:
        return _nothing(
            "SB-SWEEP-PERMISSION",
            f"{_shown(event.sender)} has the permission {permission}; on a pull request from a fork a label counts "
            f"from {', '.join(name for name in PERMISSIONS if name in SETTERS)}",
        )
    return of_labels((event.label or "",))


def of_labels(labels: Sequence[str]) -> Sweep:
    """The sweep that a set of labels asks for; other labels are none of its business."""
    given = {label.casefold() for label in labels}
    primaries = [entry for entry in PRIMARIES if entry.name in given]
    modifiers = [entry for entry in MODIFIERS if entry.name in given]
    modes = [entry for entry in modifiers if entry.mode is not None]
    if len(primaries) > 1:
        return _nothing("SB-SWEEP-TWO-PRIMARIES", f"{_names(primaries)} are set: leave one of them")
    if not primaries and modifiers:
        return _nothing("SB-SWEEP-MODIFIER", f"{_names(modifiers)} needs {_PRIMARY_NAMES} beside it")
    if not primaries:
        return _nothing("SB-SWEEP-NO-LABEL", f"no sweep label: set {_PRIMARY_NAMES} to run the configs")
    if len(modes) > 1:
        return _nothing("SB-SWEEP-TWO-MODES", f"{_names(modes)} are set: leave one of them")
    chosen = primaries[0]
    return Sweep(
        "; ".join([f"{chosen.name}: {chosen.meaning}", *(f"{entry.name}: {entry.meaning}" for entry in modifiers)]),
        canary=chosen.canary,
        fail_fast=chosen.fail_fast,
        mode=next((entry.mode for entry in modes if entry.mode), Mode.PERFORMANCE),
        fast=any(entry.fast for entry in modifiers),
    )


def unless_skipped(sweep: Sweep, head_message: str) -> Sweep:
    """The sweep, or none where the head commit's message says so."""
    if sweep.runs and SKIP in head_message:
        return _nothing("SB-SWEEP-SKIPPED", f"the head commit's message has {SKIP}: push a commit without it to run")
    return sweep


def _known(label: str | None) -> bool:
    names = {entry.name for entry in (*PRIMARIES, *MODIFIERS)}
    return label is not None and label.casefold() in names


def _names(entries: Sequence[Primary | Modifier]) -> str:
    return " and ".join(entry.name for entry in entries)


def _shown(text: str | None) -> str:
    """A name from an event, cut and on one line of printable ASCII."""
    return ascii((text or "")[:100])


def table() -> str:
    """The policy as Markdown tables, for docs/sweep-labels.md."""
    rows = ["| primary | canary first | fail-fast | what runs |", "|---|---|---|---|"]
    rows += [
        f"| `{entry.name}` | {_yes(entry.canary)} | {_yes(entry.fail_fast)} | {entry.meaning} |" for entry in PRIMARIES
    ]
    rows += ["", "| modifier | load points | accuracy points | what changes |", "|---|---|---|---|"]
    rows += [
        f"| `{entry.name}` | {_yes(entry.mode is not Mode.EVALS)} | {_yes(entry.mode is not None)} | {entry.meaning} |"
        for entry in MODIFIERS
    ]
    return "\n".join(rows)


def _yes(value: bool) -> str:
    return "yes" if value else "no"

"""Which configs are asked for: by name, by what changed, by the changelog, and whether labels let them run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from serving_bench.config.inventory import inventory
from serving_bench.config.loader import config_paths
from serving_bench.errors import InputError
from serving_bench.files import read_json
from serving_bench.render.changelog import CHANGELOG, read_appended
from serving_bench.render.changes import affected, read_changes
from serving_bench.render.event import Asked, Other, Push, read_event
from serving_bench.render.git import Git
from serving_bench.render.labels import Sweep, decide, unless_skipped
from serving_bench.render.options import RenderOptions

_SHOWN = 20


@dataclass(frozen=True)
class Notice:
    """What a person should know; ``code`` is stable."""

    code: str
    message: str


@dataclass(frozen=True)
class Selection:
    """Names for the loader, of which ``()`` means all configs; None that none is asked for."""

    names: tuple[str, ...] | None
    notices: tuple[Notice, ...] = ()


def select(options: RenderOptions, env: Mapping[str, str]) -> Selection:
    """The configs named, and of these only the changed or announced ones where that is asked for."""
    if options.changed_from is None and options.changelog_from is None:
        return Selection(options.names)
    git = Git(options.config_dir.resolve(), env)
    entries = inventory(options.config_dir)
    reasons: dict[str, str] = {}
    notices: list[Notice] = []
    if options.changed_from is not None:
        changes = read_changes(git, options.config_dir, git.merge_base(options.changed_from))
        found = affected(entries, changes)
        reasons |= found
        if changes.deleted:
            notices.append(Notice("SB-CONFIG-DELETED", f"no longer there: {listed(changes.deleted)}"))
        if not found:
            text = f"no config, and nothing that one refers to, has changed since {options.changed_from}"
            notices.append(Notice("SB-NOTHING-CHANGED", text))
    if options.changelog_from is not None:
        announced = read_appended(git, options.config_dir, git.merge_base(options.changelog_from), entries)
        reasons = dict.fromkeys(announced.configs, f"announced in {CHANGELOG}") | reasons
        if not announced.count:
            text = f"{CHANGELOG} has no entry that is not there at {options.changelog_from}"
            notices.append(Notice("SB-NOTHING-ANNOUNCED", text))
    return _among(options, reasons, notices)


def _among(options: RenderOptions, reasons: Mapping[str, str], notices: list[Notice]) -> Selection:
    """The configs with a reason, restricted to the ones named."""
    names = sorted(reasons)
    if options.names:
        named = {path.stem for path in config_paths(options.config_dir.resolve(), options.names)}
        left_out = [name for name in names if name not in named]
        names = [name for name in names if name in named]
        if left_out and not names:
            notices.append(Notice("SB-NOTHING-NAMED", f"none of the configs named is among {listed(left_out)}"))
    if names:
        text = listed([f"{name} ({reasons[name]})" for name in names])
        notices.append(Notice("SB-CONFIG-SELECTED", text))
    return Selection(tuple(names) or None, tuple(notices))


def listed(names: Sequence[str]) -> str:
    """Names for a message, of which a long list is cut."""
    more = len(names) - _SHOWN
    return ", ".join(names[:_SHOWN]) + (f" and {more} more" if more > 0 else "")


def decide_sweep(options: RenderOptions, env: Mapping[str, str]) -> Sweep:
    """What the event's labels ask for; without an event what the command line does."""
    if options.event is None:
        return Sweep("", canary=options.canary, fail_fast=options.fail_fast)
    event = read_event(read_json(options.event), options.event_name)
    if isinstance(event, Push):
        return unless_skipped(Sweep("a push"), event.message)
    if isinstance(event, Asked):
        return Sweep(event.name, canary=options.canary, fail_fast=options.fail_fast)
    if isinstance(event, Other):
        return Sweep(f"{event.name[:100]!a} starts no sweep", "SB-SWEEP-EVENT")
    sweep = decide(event, options.permission)
    if not sweep.runs:
        return sweep
    git = Git(options.config_dir.resolve(), env)
    if sweep.pinned:
        _refuse_other_commit(event.head_sha, git)
    return unless_skipped(sweep, git.message(event.head_sha))


def _refuse_other_commit(sha: str, git: Git) -> None:
    """What is checked out must be the commit that the label was set on, or GitHub's merge of it."""
    head, *parents = git.head_commits()
    if sha != head and sha not in parents[1:]:
        raise InputError(
            f"the label was set on {sha}, and {head} is checked out",
            code="SB-SWEEP-SHA",
            hint="check out the head SHA of the event that set the label",
        )

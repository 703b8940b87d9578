"""Which configs does a pull request change? By parsed values: comments and layout are no change."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from serving_bench.config.inventory import Entry
from serving_bench.config.loader import CLUSTERS, DATASETS, SCENARIOS
from serving_bench.config.reader import SERVING
from serving_bench.config.strictyaml import MAX_BYTES, parse
from serving_bench.files import read_regular
from serving_bench.render.git import Git

_UNREADABLE = object()
"""Stands for a file with errors: unlike everything, itself included."""


@dataclass(frozen=True)
class Changes:
    """Parsed values that are not what they were; configs by name."""

    configs: frozenset[str] = frozenset()
    scenarios: frozenset[str] = frozenset()
    clusters: frozenset[str] = frozenset()
    datasets: frozenset[str] = frozenset()
    deleted: tuple[str, ...] = ()
    """Configs that are gone."""


def affected(configs: Mapping[str, Entry], changes: Changes) -> dict[str, str]:
    """Config → why it is to be run again, in the order of the configs."""
    found = {}
    for name, entry in configs.items():
        reason = next(_reasons(name, entry, changes), None)
        if reason:
            found[name] = reason
    return found


def _reasons(name: str, entry: Entry, changes: Changes) -> Iterator[str]:
    if name in changes.configs:
        yield "changed"
    if entry.extends in changes.configs:
        yield f"extends {entry.extends}"
    if entry.scenario in changes.scenarios:
        yield f"scenario {entry.scenario}"
    yield from (f"cluster {cluster}" for cluster in entry.clusters if cluster in changes.clusters)
    if entry.dataset in changes.datasets:
        yield f"dataset {entry.dataset}"


def changed_entries(old: Any, new: Any, top: str) -> frozenset[str]:
    """Names below the key ``top`` of a catalog file whose values differ; new ones too."""
    before, after = _entries(old, top), _entries(new, top)
    return frozenset(name for name, value in after.items() if name not in before or before[name] != value)


def _entries(value: Any, top: str) -> Mapping[str, Any]:
    inner = value.get(top) if isinstance(value, dict) else None
    return inner if isinstance(inner, dict) else {}


def read_changes(git: Git, config_dir: Path, commit: str) -> Changes:
    """Compare the work tree's files below ``config_dir`` with those at a commit."""
    folder = config_dir.resolve()
    prefix = _prefix(git, folder)
    changed = git.changed_paths(commit, folder)
    before = git.files_at(commit, changed)
    files = _Files(folder, prefix, changed, before)
    serving = [path for path in changed if _is_config(path, prefix)]
    return Changes(
        configs=frozenset(Path(path).stem for path in serving if files.differs(path)),
        scenarios=files.entries(SCENARIOS, "scenarios"),
        clusters=files.entries(CLUSTERS, "clusters"),
        datasets=files.entries(DATASETS, "datasets"),
        deleted=tuple(sorted(Path(path).stem for path in serving if files.now(path) is None)),
    )


def _prefix(git: Git, folder: Path) -> str:
    relative = folder.relative_to(git.top().resolve()).as_posix()
    return "" if relative == "." else f"{relative}/"


def _is_config(path: str, prefix: str) -> bool:
    return (
        path.startswith(f"{prefix}{SERVING}/") and path.endswith(".yaml") and path.count("/") == prefix.count("/") + 1
    )


@dataclass(frozen=True)
class _Files:
    """Both versions of the changed files."""

    folder: Path
    prefix: str
    changed: Iterable[str]
    before: Mapping[str, bytes]

    def now(self, path: str) -> bytes | None:
        file = self.folder / path.removeprefix(self.prefix)
        return read_regular(file, MAX_BYTES) if file.exists() else None

    def differs(self, path: str) -> bool:
        now = self.now(path)
        return now is not None and not _same(_value(self.before.get(path)), _value(now))

    def entries(self, name: str, top: str) -> frozenset[str]:
        path = self.prefix + name
        if path not in self.changed:
            return frozenset()
        return changed_entries(_value(self.before.get(path)), _value(self.now(path)), top)


def _value(data: bytes | None) -> Any:
    if data is None:
        return None
    document = parse("", data)
    return _UNREADABLE if document.problems else document.value


def _same(old: Any, new: Any) -> bool:
    return old is not _UNREADABLE and new is not _UNREADABLE and bool(old == new)

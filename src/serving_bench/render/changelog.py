"""``configs/perf-changelog.yaml``: what a pull request expects to move, said by appending an entry."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from serving_bench.config.models import Yaml
from serving_bench.config.strictyaml import MAX_BYTES, Document, Key, Place, parse, shorten
from serving_bench.config.structure import validate
from serving_bench.errors import ConfigError, Problem
from serving_bench.files import read_regular
from serving_bench.render.git import Git

CHANGELOG = "perf-changelog.yaml"


class ChangelogEntry(Yaml):
    """Names or patterns of configs, what changes for them, and where that is written down."""

    configs: Annotated[list[Annotated[str, Field(min_length=1, max_length=200)]], Field(min_length=1, max_length=1000)]
    description: Annotated[str, Field(min_length=1, max_length=5000)]
    link: Annotated[str, Field(pattern=r"^https?://[^\s]+$", max_length=2000)]


class ChangelogYaml(Yaml):
    """The file is a list; ``entries`` stands for it, so that problems have a key path."""

    entries: list[ChangelogEntry]


@dataclass(frozen=True)
class Appended:
    """What the appended entries name: config → description of the last entry that names it."""

    count: int
    configs: Mapping[str, str]


def appended(document: Document, before: Any, names: Iterable[str]) -> Appended:
    """The entries after those of ``before``, the parsed list at an earlier commit.

    Raises ``ConfigError``: SB-CHANGELOG-EDITED where an earlier entry is not
    what and where it was, SB-CHANGELOG-CONFIG where no config has a name.
    """
    wrapped = _wrapped(document)
    model = validate(wrapped, ChangelogYaml)
    if model is None:
        raise ConfigError(wrapped.problems)
    old = before if isinstance(before, list) else []
    problem = _edited(wrapped, old)
    if problem is not None:
        raise ConfigError([problem])
    known = sorted(names)
    found: dict[str, str] = {}
    problems = []
    for index in range(len(old), len(model.entries)):
        entry = model.entries[index]
        for position, pattern in enumerate(entry.configs):
            matches = [name for name in known if name == pattern or fnmatchcase(name, pattern)]
            found |= dict.fromkeys(matches, entry.description)
            if not matches:
                problems.append(_unknown(wrapped, ("entries", index, "configs", position), pattern, known))
    if problems:
        raise ConfigError(problems)
    return Appended(len(model.entries) - len(old), found)


def _wrapped(document: Document) -> Document:
    """The document as a mapping with the one key ``entries``; an empty file is an empty list."""
    if [problem.code for problem in document.problems] == ["SB-YAML-EMPTY"]:
        return Document(document.path, {"entries": []})

    def moved(places: Mapping[Key, Place]) -> dict[Key, Place]:
        return {("entries", *key): place for key, place in places.items()}

    value = None if document.problems else {"entries": document.value}
    return Document(document.path, value, moved(document.places), moved(document.key_places), list(document.problems))


def _edited(document: Document, old: Sequence[Any]) -> Problem | None:
    new = document.value["entries"]
    for index, entry in enumerate(old):
        if index >= len(new):
            message = f"{len(old) - index} earlier entries are gone: entries are only ever appended"
            return document.problem(("entries",), message, "SB-CHANGELOG-EDITED")
        if new[index] != entry:
            message = f"not what the entry at this place was ({_what(entry)}): entries are only ever appended"
            return document.problem(("entries", index), message, "SB-CHANGELOG-EDITED")
    return None


def _what(entry: Any) -> str:
    return shorten(entry.get("description") if isinstance(entry, dict) else entry)


def _unknown(document: Document, key: Key, pattern: str, known: Sequence[str]) -> Problem:
    message = f"no config is called {shorten(pattern)}, known: {', '.join(known)}"
    return document.problem(key, message, "SB-CHANGELOG-CONFIG")


def read_appended(git: Git, config_dir: Path, commit: str, names: Iterable[str]) -> Appended:
    """The entries that the work tree has beyond a commit."""
    path = config_dir.resolve() / CHANGELOG
    shown = path.relative_to(git.top().resolve()).as_posix()
    old = git.files_at(commit, [shown]).get(shown)
    return appended(_read(path, shown), _before(shown, old), names)


def _read(path: Path, shown: str) -> Document:
    return parse(shown, read_regular(path, MAX_BYTES) if path.exists() else b"")


def _before(shown: str, data: bytes | None) -> Any:
    """The parsed list at the earlier commit; where that had errors, nothing of it binds."""
    return None if data is None else parse(shown, data).value

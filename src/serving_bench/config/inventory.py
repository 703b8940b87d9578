"""What a person asks about configs: where does a value come from, and what does a config refer to?"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from serving_bench.config.loader import SCENARIOS, config_paths
from serving_bench.config.models import ServingYaml
from serving_bench.config.overrides import Overrides
from serving_bench.config.reader import Reader
from serving_bench.config.strictyaml import Document, Key, dotted
from serving_bench.config.structure import validate
from serving_bench.errors import ConfigError

_NO_OVERRIDES = Overrides()


@dataclass(frozen=True)
class Explained:
    """One value of a config: its dotted key, the value as JSON, and ``file:line``, a flag, or ``default``."""

    key: str
    value: str
    source: str


@dataclass(frozen=True)
class Entry:
    """What a config is and refers to; None where the file does not say or cannot be read."""

    name: str
    path: Path
    extends: str | None
    scenario: str | None
    clusters: tuple[str, ...]
    dataset: str | None


def explain(config_dir: Path, name: str, overrides: Overrides = _NO_OVERRIDES) -> list[Explained]:
    """Every value of one config with its source. Raises ``ConfigError`` and the errors of ``config_paths``."""
    reader = Reader(config_dir.resolve())
    found = []
    for path in config_paths(reader.config_dir, [name]):
        document = reader.config(path, overrides)
        config = validate(document, ServingYaml)
        if config is None:
            raise ConfigError(document.problems)
        values = config.model_dump(mode="json", by_alias=True)
        found += [_explained(document, key, value) for key, value in _leaves((), values)]
    return found


def _leaves(key: Key, value: Any) -> Iterator[tuple[Key, Any]]:
    if isinstance(value, dict) and value:
        for name, inner in value.items():
            yield from _leaves((*key, name), inner)
    else:
        yield key, value


def _explained(document: Document, key: Key, value: Any) -> Explained:
    path, line, _ = document.place(key)
    if isinstance(value, float) and value.is_integer():
        value = int(value)  # as a person writes it
    source = "default" if key not in document.places else f"{path}:{line}" if line else path
    return Explained(dotted(key), json.dumps(value, ensure_ascii=False), source)


def inventory(config_dir: Path) -> dict[str, Entry]:
    """All configs by name, as far as their files can be read: what is wrong with them is for ``load`` to say."""
    reader = Reader(config_dir.resolve())
    scenarios = _mapping(reader.document(reader.config_dir / SCENARIOS).value, "scenarios")
    return {path.stem: _entry(reader, path, scenarios) for path in config_paths(reader.config_dir, ())}


def _entry(reader: Reader, path: Path, scenarios: Mapping[str, Any]) -> Entry:
    own = reader.document(path).value
    value = reader.config(path, _NO_OVERRIDES).value
    clusters = value.get("cluster") if isinstance(value, dict) else None
    named = [clusters] if isinstance(clusters, str) else clusters if isinstance(clusters, list) else []
    scenario = _text(value, "scenario")
    return Entry(
        name=path.stem,
        path=path,
        extends=_text(own, "extends"),
        scenario=scenario,
        clusters=tuple(cluster for cluster in named if isinstance(cluster, str)),
        dataset=_text(scenarios.get(scenario or ""), "dataset"),
    )


def _mapping(value: Any, key: str) -> Mapping[str, Any]:
    inner = value.get(key) if isinstance(value, dict) else None
    return inner if isinstance(inner, dict) else {}


def _text(value: Any, key: str) -> str | None:
    found = value.get(key) if isinstance(value, dict) else None
    return found if isinstance(found, str) else None

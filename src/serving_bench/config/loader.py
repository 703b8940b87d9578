"""From a ``configs/`` folder to plans, with all problems of all files in one go."""

from __future__ import annotations

import fnmatch
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel

from serving_bench.config import catalog, rules, strictyaml
from serving_bench.config.models import ClustersYaml, DatasetsYaml, ScenariosYaml, ServingYaml
from serving_bench.config.overrides import Overrides
from serving_bench.config.plans import build_plans
from serving_bench.config.reader import SERVING, Reader
from serving_bench.config.structure import validate
from serving_bench.contracts import Plan
from serving_bench.errors import ConfigError, InputError, Problem

ModelT = TypeVar("ModelT", bound=BaseModel)

CLUSTERS = "clusters.yaml"
SCENARIOS = "scenarios.yaml"
DATASETS = "datasets.lock.yaml"
_NO_OVERRIDES = Overrides()
_GLOB = frozenset("*?[")
_NAME = re.compile(r"[A-Za-z0-9][!-~]{0,99}\Z")
_NAME_RULE = "expected a letter or digit and at most 99 more characters of printable ASCII without blanks"


@dataclass(frozen=True)
class Loaded:
    """Plans of the configs that were asked for, and the warnings about them."""

    plans: tuple[Plan, ...]
    warnings: tuple[Problem, ...]


@dataclass
class _Load:
    reader: Reader
    overrides: Overrides
    problems: set[Problem] = field(default_factory=set)
    """A set: what is wrong with a file that several configs extend is said once."""

    def file(
        self,
        name: str,
        kind: type[ModelT],
        check: Callable[[strictyaml.Document, ModelT], Iterator[Problem]],
    ) -> ModelT | None:
        document = self.reader.document(self.reader.config_dir / name)
        model = validate(document, kind)
        if model is not None:
            document.problems += check(document, model)
        self.problems |= set(document.problems)
        return model

    def catalog(self) -> rules.Catalog | None:
        """What configs refer to; None where a file of it has problems."""
        clusters = self.file(CLUSTERS, ClustersYaml, catalog.check_clusters)
        scenarios = self.file(SCENARIOS, ScenariosYaml, catalog.check_scenarios)
        datasets = self.file(DATASETS, DatasetsYaml, catalog.check_datasets)
        if clusters is None or scenarios is None or datasets is None:
            return None
        return rules.Catalog(clusters.clusters, scenarios.scenarios, datasets.datasets)

    def config(self, path: Path, known: rules.Catalog | None) -> tuple[Plan, ...]:
        document = self.reader.config(path, self.overrides)
        config = validate(document, ServingYaml)
        plans: tuple[Plan, ...] = ()
        if config is not None and known is not None:
            subject = rules.subject(document, config, known)
            document.problems += rules.check(subject)
            if _NAME.match(path.stem) and not any(problem.severity == "error" for problem in document.problems):
                plans = build_plans(path.stem, subject, document.path, self.overrides.recorded())
        self.problems |= set(document.problems)
        if not _NAME.match(path.stem):
            message = f"the file's name is the config's name, and {strictyaml.shorten(path.stem)} is none: {_NAME_RULE}"
            self.problems.add(Problem(document.path, 1, 1, "", message, "SB-CONFIG-NAME"))
        return plans


def config_paths(config_dir: Path, names: Sequence[str]) -> list[Path]:
    """Files of the configs named, or of all; ``InputError`` (SB-CONFIG-UNKNOWN, SB-CONFIG-NONE).

    A name is a config's name (the file's stem), a pattern such as ``gemma4-*``, or the path of a file.
    """
    folder = config_dir / SERVING
    known = {path.stem: path for path in sorted(folder.glob("*.yaml")) if not path.name.startswith(".")}
    if not known:
        raise InputError(
            f"{folder}: no serving configs (*.yaml) here",
            code="SB-CONFIG-NONE",
            hint="give the folder that holds serving/, clusters.yaml and scenarios.yaml with --config-dir",
        )
    if not names:
        return list(known.values())
    return list(dict.fromkeys(path for name in names for path in _named(name, known)))


def _named(name: str, known: dict[str, Path]) -> list[Path]:
    if name in known:
        return [known[name]]
    if found := [known[stem] for stem in fnmatch.filter(known, name)] if _GLOB & set(name) else []:
        return found
    if name.endswith((".yaml", ".yml")):
        return [Path(os.path.abspath(name))]  # noqa: PTH100  without ``..``, so that a file has one name
    raise InputError(
        f"unknown config {strictyaml.shorten(name)}, known: {', '.join(known)}",
        code="SB-CONFIG-UNKNOWN",
        hint="a config's name is its file's name without .yaml; patterns such as gemma4-* are allowed",
    )


def _not_read(reader: Reader, path: Path) -> Problem:
    return Problem(
        reader.shown(path), 1, 1, "", "configs end in .yaml: rename the file, it is not read", "SB-CONFIG-YML"
    )


def load(config_dir: Path, names: Iterable[str] = (), overrides: Overrides = _NO_OVERRIDES) -> Loaded:
    """Plans of the named configs (all if none is named); ``ConfigError`` with every problem found."""
    run = _Load(Reader(config_dir.resolve()), overrides)
    known = run.catalog()
    plans = [plan for path in config_paths(run.reader.config_dir, list(names)) for plan in run.config(path, known)]
    run.problems |= {_not_read(run.reader, path) for path in (run.reader.config_dir / SERVING).glob("*.yml")}
    if any(problem.severity == "error" for problem in run.problems):
        raise ConfigError(run.problems)
    return Loaded(tuple(plans), tuple(sorted(run.problems)))

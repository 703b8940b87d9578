"""From a ``configs/`` folder to plans, with all problems of all files in one go."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel

from serving_bench.config import catalog, rules, strictyaml
from serving_bench.config.models import ClustersYaml, DatasetsYaml, ScenariosYaml, ServingYaml
from serving_bench.config.plans import build_plans
from serving_bench.config.structure import validate
from serving_bench.contracts import Plan
from serving_bench.errors import ConfigError, InputError, Problem
from serving_bench.files import read_bytes

ModelT = TypeVar("ModelT", bound=BaseModel)

CLUSTERS = "clusters.yaml"
SCENARIOS = "scenarios.yaml"
DATASETS = "datasets.lock.yaml"
SERVING = "serving"


@dataclass(frozen=True)
class Loaded:
    """Plans of the configs that were asked for, and the warnings about them."""

    plans: tuple[Plan, ...]
    warnings: tuple[Problem, ...]


@dataclass
class _Load:
    config_dir: Path
    root: Path
    problems: list[Problem] = field(default_factory=list)

    def shown(self, path: Path) -> str:
        """The path as problems show it: relative to the repository root where it is below it."""
        return path.relative_to(self.root).as_posix() if path.is_relative_to(self.root) else str(path)

    def document(self, path: Path) -> strictyaml.Document:
        try:
            data = read_bytes(path)
        except InputError as error:
            reason = error.message.partition(": ")[2]
            problem = Problem(self.shown(path), 1, 1, "", reason, error.code)
            return strictyaml.Document(self.shown(path), problems=[problem])
        return strictyaml.parse(self.shown(path), data)

    def file(
        self,
        name: str,
        kind: type[ModelT],
        check: Callable[[strictyaml.Document, ModelT], Iterator[Problem]],
    ) -> ModelT | None:
        document = self.document(self.config_dir / name)
        model = validate(document, kind)
        if model is not None:
            document.problems += check(document, model)
        self.problems += document.problems
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
        document = self.document(path)
        config = validate(document, ServingYaml)
        plans: tuple[Plan, ...] = ()
        if config is not None and known is not None:
            subject = rules.subject(document, config, known)
            document.problems += rules.check(subject)
            if not any(problem.severity == "error" for problem in document.problems):
                plans = build_plans(path.stem, subject, document.path)
        self.problems += document.problems
        return plans


def config_paths(config_dir: Path, names: Sequence[str]) -> list[Path]:
    """Files of the configs named, or of all; ``InputError`` (SB-CONFIG-UNKNOWN, SB-CONFIG-NONE).

    A name is a config's name (the file's stem) or the path of its file.
    """
    folder = config_dir / SERVING
    known = {path.stem: path for path in sorted(folder.glob("*.yaml"))}
    if not known:
        raise InputError(
            f"{folder}: no serving configs (*.yaml) here",
            code="SB-CONFIG-NONE",
            hint="give the folder that holds serving/, clusters.yaml and scenarios.yaml with --config-dir",
        )
    if not names:
        return list(known.values())
    return [_named(name, known) for name in dict.fromkeys(names)]


def _named(name: str, known: dict[str, Path]) -> Path:
    if name in known:
        return known[name]
    if name.endswith((".yaml", ".yml")):
        return Path(name)
    raise InputError(
        f"unknown config {strictyaml.shorten(name)}, known: {', '.join(known)}",
        code="SB-CONFIG-UNKNOWN",
        hint="a config's name is its file's name without .yaml",
    )


def load(config_dir: Path, names: Iterable[str] = ()) -> Loaded:
    """Plans of the named configs (all if none is named); ``ConfigError`` with every problem found."""
    run = _Load(config_dir, config_dir.resolve().parent)
    run.config_dir = config_dir.resolve()
    known = run.catalog()
    paths = [path if path.is_absolute() else path.absolute() for path in config_paths(run.config_dir, list(names))]
    plans = [plan for path in paths for plan in run.config(path, known)]
    if any(problem.severity == "error" for problem in run.problems):
        raise ConfigError(run.problems)
    return Loaded(tuple(plans), tuple(run.problems))

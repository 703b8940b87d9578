"""Rules over a whole config: what needs more than one value, or another file.

Each rule is a generator of problems and stands in ``RULES``; it sees a
``Subject`` and nothing else, so that it can be tested alone. Lists of allowed
values in messages come from the registry and the loaded files.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from serving_bench.config import words
from serving_bench.config.conc import MAX_POINTS, concurrencies
from serving_bench.config.models import ClusterYaml, DatasetYaml, ScenarioYaml, ServingYaml
from serving_bench.config.owned import OWNED_ENV
from serving_bench.config.strictyaml import Document, Key, shorten
from serving_bench.contracts import ScenarioSpec
from serving_bench.engines import ENGINES, find_engine
from serving_bench.engines.base import Engine, flag_name, flag_values
from serving_bench.errors import Problem
from serving_bench.routers import NO_ROUTER, ROUTERS, find_router
from serving_bench.routers.base import Router


@dataclass(frozen=True)
class Catalog:
    """What configs refer to."""

    clusters: Mapping[str, ClusterYaml] = field(default_factory=dict)
    scenarios: Mapping[str, ScenarioYaml] = field(default_factory=dict)
    datasets: Mapping[str, DatasetYaml] = field(default_factory=dict)
    traffic: dict[tuple[str, float | None], tuple[ScenarioSpec, str]] = field(default_factory=dict)
    """What was made of a scenario so far: (name, a config's own duration) → scenario and workload hash."""


@dataclass(frozen=True)
class Command:
    """A command line split into words, with the registry entry that its first words name."""

    words: tuple[str, ...]
    engine: Engine | None = None
    router: Router | None = None


@dataclass(frozen=True)
class Subject:
    """One config under test."""

    document: Document
    config: ServingYaml
    catalog: Catalog
    serve: Command | None
    """None where the command cannot be split; that is a problem already."""
    router: Command | None

    @property
    def engine(self) -> Engine | None:
        return self.serve.engine if self.serve else None

    @property
    def gpus(self) -> int:
        """GPUs per replica."""
        if self.config.gpus is not None:
            return self.config.gpus
        return 1 if self.engine is None or self.engine.needs_gpu else 0

    def problem(self, key: Key, message: str, code: str, *, severity: str = "error") -> Problem:
        return self.document.problem(key, message, code, severity=severity)


def subject(document: Document, config: ServingYaml, catalog: Catalog) -> Subject:
    """Split the commands; a command that cannot be split adds its problem to the document."""
    return Subject(
        document=document,
        config=config,
        catalog=catalog,
        serve=_command(document, ("serve",), config.serve),
        router=_command(document, ("router", "serve"), config.router.serve) if config.router else None,
    )


def _command(document: Document, key: Key, text: str) -> Command | None:
    try:
        split = tuple(words.split(text))
    except words.WordError as error:
        document.problems.append(document.problem(key, str(error), "SB-COMMAND"))
        return None
    return Command(split, find_engine(split), find_router(split))


def _names(known: Iterable[str]) -> str:
    return ", ".join(sorted(known)) or "none"


def _first_words(entries: Sequence[Engine | Router]) -> str:
    return ", ".join(repr(" ".join(entry.words)) for entry in entries)


def engine_known(s: Subject) -> Iterator[Problem]:
    if s.serve and s.serve.engine is None:
        found = shorten(" ".join(s.serve.words[:3]))
        allowed = _first_words(ENGINES)
        yield s.problem(("serve",), f"unknown engine {found}, allowed first words: {allowed}", "SB-ENGINE-UNKNOWN")


def router_known(s: Subject) -> Iterator[Problem]:
    if s.router and s.router.router is None:
        found = shorten(" ".join(s.router.words[:3]))
        allowed = _first_words(ROUTERS)
        yield s.problem(("router", "serve"), f"unknown router {found}, allowed: {allowed}", "SB-ROUTER-UNKNOWN")


def router_fits(s: Subject) -> Iterator[Problem]:
    """The engine stands behind a router that it knows, or behind none."""
    if s.engine is None or (s.router and s.router.router is None):
        return
    profile = s.router.router.profile if s.router and s.router.router else NO_ROUTER
    if s.config.router is not None and s.router is None:
        return  # its command could not be split
    if profile not in s.engine.routers:
        allowed = ", ".join(router.kind for router in ROUTERS if router.profile in s.engine.routers)
        if NO_ROUTER in s.engine.routers:
            allowed += ", or none"
        found = s.router.router.kind if s.router and s.router.router else NO_ROUTER
        key: Key = ("router", "serve") if s.router else ()
        message = f"{s.engine.kind} is reached through the router {allowed}, found {found}"
        yield s.problem(key, message, "SB-ROUTER-MISSING" if found == NO_ROUTER else "SB-ROUTER-ENGINE")


def references_exist(s: Subject) -> Iterator[Problem]:
    for index, name in enumerate(s.config.cluster):
        if name not in s.catalog.clusters:
            key: Key = ("cluster", index) if ("cluster", index) in s.document.places else ("cluster",)
            message = f"unknown cluster {shorten(name)}, known: {_names(s.catalog.clusters)}"
            yield s.problem(key, message, "SB-CLUSTER-UNKNOWN")
    scenario = s.catalog.scenarios.get(s.config.scenario)
    if scenario is None:
        message = f"unknown scenario {shorten(s.config.scenario)}, known: {_names(s.catalog.scenarios)}"
        yield s.problem(("scenario",), message, "SB-SCENARIO-UNKNOWN")
    elif scenario.dataset not in s.catalog.datasets:
        message = f"scenario {s.config.scenario} uses dataset {shorten(scenario.dataset)}, which has no lock entry"
        yield s.problem(("scenario",), f"{message}; locked: {_names(s.catalog.datasets)}", "SB-DATASET-UNKNOWN")


def model_is_one(s: Subject) -> Iterator[Problem]:
    model = s.config.model
    if (model.id is None) == (model.path is None):
        found = "both" if model.id is not None else "neither"
        yield s.problem(("model",), f"expected either id or path, found {found}", "SB-MODEL")
    elif model.id is not None and model.revision is None:
        yield s.problem(("model",), "expected a revision (40 hex digits) beside id", "SB-MODEL-REVISION")


def conc_distinct(s: Subject) -> Iterator[Problem]:
    if not isinstance(s.config.conc, list):
        return
    seen: set[int] = set()
    for index, conc in enumerate(s.config.conc):
        if conc in seen:
            yield s.problem(("conc", index), f"concurrency {conc} stands twice", "SB-CONC-REPEATED")
        seen.add(conc)


def conc_range(s: Subject) -> Iterator[Problem]:
    count = len(concurrencies(s.config.conc))
    if count == 0:
        yield s.problem(("conc",), "the range is empty: from is greater than to", "SB-CONC-RANGE")
    elif count > MAX_POINTS:
        yield s.problem(("conc",), f"the range has more than {MAX_POINTS} concurrencies", "SB-CONC-RANGE")


def evals_distinct(s: Subject) -> Iterator[Problem]:
    for index, name in enumerate(s.config.evals):
        if name in s.config.evals[:index]:
            yield s.problem(("evals", index), f"benchmark {shorten(name)} stands twice", "SB-EVALS-REPEATED")


def clusters_distinct(s: Subject) -> Iterator[Problem]:
    for index, name in enumerate(s.config.cluster):
        if name in s.config.cluster[:index]:
            yield s.problem(("cluster", index), f"cluster {shorten(name)} stands twice", "SB-CLUSTER-REPEATED")


def replicas_supported(s: Subject) -> Iterator[Problem]:
    if s.config.replicas == 1 or s.engine is None or s.serve is None:
        return
    if not s.engine.replicas:
        behind = f" behind {s.router.router.kind}" if s.router and s.router.router else ""
        message = f"{s.engine.kind} runs one replica{behind}, found {s.config.replicas}"
        yield s.problem(("replicas",), message, "SB-REPLICAS-ENGINE")
    for flag in s.engine.kv_event_flags:
        if flag_values(s.serve.words, (flag,)):
            message = f"{flag} would be the same for {s.config.replicas} replicas: leave it out, the launcher sets it"
            yield s.problem(("serve",), message, "SB-REPLICAS-EVENTS")


def parallel_is_gpus(s: Subject) -> Iterator[Problem]:
    """A deployment on GPUs uses as many as its command line asks for."""
    if s.engine is None or s.serve is None or not s.engine.needs_gpu or s.gpus == 0:
        return
    asked = s.engine.gpus(s.serve.words)
    if asked is not None and asked != s.gpus:
        key: Key = ("gpus",) if s.config.gpus is not None else ("serve",)
        message = f"the command asks for {asked} GPUs (TP x PP x DP), gpus is {s.gpus}"
        yield s.problem(key, message, "SB-GPUS-PARALLEL")


def gpus_fit(s: Subject) -> Iterator[Problem]:
    if s.config.gpus is None and s.engine is None:
        return  # whether it needs GPUs is not known; that its command is wrong is said already
    needed = s.gpus * s.config.replicas
    for name in s.config.cluster:
        cluster = s.catalog.clusters.get(name)
        if cluster is None:
            continue
        have = (cluster.gpus.count if cluster.gpus else 0) * cluster.nodes
        if needed > have:
            message = f"{s.config.replicas} x {s.gpus} GPUs do not fit cluster {name} with {have}"
            yield s.problem(("replicas",), message, "SB-GPUS")


def features_present(s: Subject) -> Iterator[Problem]:
    wanted = {"router": s.config.router is not None, "storage": bool(s.config.storage)}
    for name in s.config.cluster:
        cluster = s.catalog.clusters.get(name)
        for feature in sorted(feature for feature, used in wanted.items() if used):
            if cluster is not None and feature not in cluster.features:
                message = f"cluster {name} does not list the feature {feature}, it lists: {_names(cluster.features)}"
                yield s.problem((feature,), message, "SB-CLUSTER-FEATURE")


def image_pinned(s: Subject) -> Iterator[Problem]:
    images = {("image",): s.config.image, ("router", "image"): s.config.router.image if s.config.router else None}
    for key, image in images.items():
        if image is None:
            continue
        name = image.rsplit("/", 1)[-1]
        digest = re.search(r"@sha256:[0-9a-f]{64}\Z", image)
        tag = name.split("@", 1)[0].partition(":")[2]
        if tag == "latest" or not (tag or digest):
            yield s.problem(
                key, f"expected a tag other than latest, or a digest, found {shorten(image)}", "SB-IMAGE-TAG"
            )
        elif not digest:
            message = f"{shorten(image)} has no digest: the same tag can name another image tomorrow"
            yield s.problem(key, message, "SB-IMAGE-DIGEST", severity="warning")


def image_present(s: Subject) -> Iterator[Problem]:
    for name in s.config.cluster:
        cluster = s.catalog.clusters.get(name)
        if cluster is not None and cluster.runtime == "docker" and s.config.image is None:
            yield s.problem((), f"cluster {name} runs containers: add the key image", "SB-IMAGE-MISSING")


def owned_names(s: Subject) -> Iterator[Problem]:
    environments = {("env",): s.config.env, ("router", "env"): s.config.router.env if s.config.router else {}}
    for key, env in environments.items():
        for name in env:
            if name in OWNED_ENV:
                yield s.problem((*key, name), "this variable is set by the launcher itself", "SB-OWNED-ENV")
    if s.serve and s.serve.engine:
        engine = s.serve.engine
        yield from _owned_flags(s, ("serve",), s.serve.words, engine.owned_flags)
        after = s.serve.words[len(engine.words) :]
        if engine.names_model and after and not after[0].startswith("-"):
            message = f"found {shorten(after[0])}: the model comes from the key model, leave it out of the command"
            yield s.problem(("serve",), message, "SB-OWNED-FLAG")
    if s.router and s.router.router:
        yield from _owned_flags(s, ("router", "serve"), s.router.words, s.router.router.owned_flags)


def _owned_flags(s: Subject, key: Key, argv: Iterable[str], owned: Iterable[str]) -> Iterator[Problem]:
    for flag in sorted({flag_name(word) for word in argv} & set(owned)):
        yield s.problem(key, f"{flag} is set by the launcher itself: leave it out", "SB-OWNED-FLAG")


def patterns_compile(s: Subject) -> Iterator[Problem]:
    for name, patterns in (("router-log", s.config.expect.router_log), ("server-log", s.config.expect.server_log)):
        for index, pattern in enumerate(patterns):
            try:
                re.compile(pattern)
            except (re.error, OverflowError, RecursionError) as error:
                message = f"not a regular expression: {shorten(str(error))}"
                yield s.problem(("expect", name, index), message, "SB-PATTERN")


RULES: tuple[Callable[[Subject], Iterator[Problem]], ...] = (
    engine_known,
    router_known,
    router_fits,
    references_exist,
    model_is_one,
    conc_distinct,
    conc_range,
    clusters_distinct,
    evals_distinct,
    replicas_supported,
    parallel_is_gpus,
    gpus_fit,
    features_present,
    image_pinned,
    image_present,
    owned_names,
    patterns_compile,
)


def check(s: Subject) -> list[Problem]:
    """All problems of one config that its structure allowed to be looked for."""
    return [problem for rule in RULES for problem in rule(s)]

"""From a config that passed its rules to one plan per cluster."""

from __future__ import annotations

from pathlib import PurePosixPath

from serving_bench.config.conc import concurrencies
from serving_bench.config.models import ClusterYaml, DatasetYaml, LengthYaml, ModelYaml
from serving_bench.config.rules import Command, Subject
from serving_bench.contracts import (
    CacheState,
    ClusterSpec,
    DatasetSpec,
    Expect,
    LoadSpec,
    ModelSpec,
    Plan,
    ProcessSpec,
    Runtime,
    ScenarioSpec,
    Slo,
    Timeouts,
    WarmupSpec,
    comparability_hash,
    workload_hash,
)
from serving_bench.engines.base import Engine
from serving_bench.routers import NO_ROUTER


def build_plans(name: str, subject: Subject, source: str, overrides: dict[str, str]) -> tuple[Plan, ...]:
    """One plan per cluster of the config; ``overrides`` is what the command line had set, for the record."""
    return tuple(_plan(name, subject, source, cluster, overrides) for cluster in subject.config.cluster)


def _plan(name: str, subject: Subject, source: str, cluster_name: str, overrides: dict[str, str]) -> Plan:
    config = subject.config
    cluster = _cluster(cluster_name, subject.catalog.clusters[cluster_name])
    scenario, workload = _traffic(subject)
    model = _model(config.model)
    total_gpus = subject.gpus * config.replicas
    router = subject.router.router if subject.router else None
    return Plan(
        config=name,
        description=config.description,
        source=source,
        cluster=cluster,
        model=model,
        framework=_engine(subject).framework,
        router_profile=router.profile if router else NO_ROUTER,
        engine=_process(_engine(subject).kind, subject.serve, config.env, config.image),
        router=_router(subject),
        gpus=subject.gpus,
        replicas=config.replicas,
        storage=dict(config.storage),
        scenario=scenario,
        conc=concurrencies(config.conc),
        repeats=config.repeats,
        evals=tuple(config.evals),
        overrides=overrides,
        cache=CacheState(config.cache),
        slo=Slo(**dict(config.slo)),
        expect=Expect(router_log=tuple(config.expect.router_log), server_log=tuple(config.expect.server_log)),
        timeouts=Timeouts(**dict(config.timeouts)),
        comparability=comparability_hash(workload, cluster, model, total_gpus),
        workload=workload,
    )


def _engine(subject: Subject) -> Engine:
    if subject.engine is None:  # the rules have refused the config before
        raise ValueError("a plan needs a known engine")
    return subject.engine


def _process(kind: str, command: Command | None, env: dict[str, str], image: str | None) -> ProcessSpec:
    return ProcessSpec(kind=kind, argv=command.words if command else (), env=dict(env), image=image)


def _router(subject: Subject) -> ProcessSpec | None:
    router = subject.config.router
    if router is None or subject.router is None or subject.router.router is None:
        return None
    return _process(subject.router.router.kind, subject.router, router.env, router.image or subject.config.image)


def _cluster(name: str, cluster: ClusterYaml) -> ClusterSpec:
    return ClusterSpec(
        name=name,
        runs_on=tuple(cluster.runs_on),
        runtime=Runtime(cluster.runtime),
        gpu_kind=cluster.gpus.kind if cluster.gpus else None,
        gpus_per_node=cluster.gpus.count if cluster.gpus else 0,
        nodes=cluster.nodes,
        features=tuple(cluster.features),
        storage=dict(cluster.storage),
        max_parallel=cluster.max_parallel,
    )


def _model(model: ModelYaml) -> ModelSpec:
    folder = PurePosixPath(model.path).name if model.path else ""
    return ModelSpec(
        served_name=model.name or model.id or folder, id=model.id, revision=model.revision, path=model.path
    )


def _traffic(subject: Subject) -> tuple[ScenarioSpec, str]:
    """The scenario and its workload hash, made once for all configs that play it."""
    key = (subject.config.scenario, subject.config.duration_s)
    if key not in subject.catalog.traffic:
        scenario = _scenario(subject.config.scenario, subject)
        subject.catalog.traffic[key] = (scenario, workload_hash(scenario))
    return subject.catalog.traffic[key]


def _scenario(name: str, subject: Subject) -> ScenarioSpec:
    scenario = subject.catalog.scenarios[name]
    return ScenarioSpec(
        name=name,
        dataset=_dataset(scenario.dataset, subject.catalog.datasets[scenario.dataset]),
        endpoint_type=scenario.endpoint_type,
        streaming=scenario.streaming,
        sampling=scenario.sampling,
        warmup=WarmupSpec(**_length(scenario.warmup)),
        load=_load(scenario.load, subject.config.duration_s),
        seed=scenario.seed,
        request_timeout_s=scenario.request_timeout_s,
        error_rate_limit=scenario.error_rate_limit,
        max_imbalance=scenario.max_imbalance,
        unique_prompts=scenario.unique_prompts,
    )


def _load(load: LengthYaml, duration_s: float | None) -> LoadSpec:
    """The scenario's load; a duration of the config's own takes its place."""
    return LoadSpec(**_length(load)) if duration_s is None else LoadSpec(duration_s=duration_s)


def _length(length: LengthYaml | None) -> dict[str, int | float | None]:
    return dict(length) if length else {}


def _dataset(name: str, dataset: DatasetYaml) -> DatasetSpec:
    return DatasetSpec(id=name, **{key: value for key, value in dict(dataset).items() if key != "description"})

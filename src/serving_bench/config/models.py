"""Structure of the YAML files under ``configs/``: keys, types and ranges of one value at a time.

What needs more than one value, or another file, is a rule (``rules.py``).
Keys are written with hyphens, as in the files.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Discriminator, Field, Tag


def _hyphens(name: str) -> str:
    return name.replace("_", "-")


def _whole(value: Any) -> Any:
    """``8.0`` is a whole number, as JSON Schema has it."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _one_or_many(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


class Yaml(BaseModel):
    """Base: unknown keys are errors, nothing is converted."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        strict=True,
        defer_build=True,
        alias_generator=_hyphens,
        allow_inf_nan=False,
    )


NonEmpty = Annotated[str, Field(min_length=1, max_length=20_000)]
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$")]
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Revision = Annotated[str, Field(pattern=r"^[0-9a-f]{40}$")]
EnvName = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]
Positive = Annotated[int, Field(ge=1, le=1_000_000), BeforeValidator(_whole)]
Gpus = Annotated[int, Field(ge=0, le=1024), BeforeValidator(_whole)]
Replicas = Annotated[int, Field(ge=1, le=256), BeforeValidator(_whole)]
Repeats = Annotated[int, Field(ge=1, le=100), BeforeValidator(_whole)]
Seed = Annotated[int, Field(ge=0, le=2**31), BeforeValidator(_whole)]
PositiveNumber = Annotated[float, Field(gt=0, le=1e9)]
Seconds = Annotated[float, Field(gt=0, le=7 * 24 * 3600)]
Share = Annotated[float, Field(ge=0, le=1)]
Names = Annotated[list[Name], Field(min_length=1, max_length=100)]
Labels = Annotated[list[NonEmpty], Field(min_length=1, max_length=20)]
Env = dict[EnvName, str]


class ModelYaml(Yaml):
    """A Hugging Face id with its revision, or a local folder."""

    id: NonEmpty | None = None
    revision: Revision | None = None
    path: NonEmpty | None = None
    name: NonEmpty | None = None
    """The name under which it is served; default: the id, or the folder's name."""


class RouterYaml(Yaml):
    serve: NonEmpty
    env: Env = {}
    image: NonEmpty | None = None


class ExpectYaml(Yaml):
    router_log: list[NonEmpty] = []
    server_log: list[NonEmpty] = []


class SloYaml(Yaml):
    ttft_p50_ms: PositiveNumber | None = None
    ttft_p90_ms: PositiveNumber | None = None
    ttft_p95_ms: PositiveNumber | None = None
    ttft_p99_ms: PositiveNumber | None = None
    itl_p95_ms: PositiveNumber | None = None
    error_rate: Share | None = None


class TimeoutsYaml(Yaml):
    ready_s: Seconds = 1800
    point_s: Seconds = 3600
    stop_s: Seconds = 60


def _added_or_multiplied(value: Any) -> str:
    return "multiplied" if isinstance(value, str) else "added"


class RangeYaml(Yaml):
    """Concurrencies ``from`` … ``to``, both included where a step reaches them."""

    from_: Annotated[Positive, Field(alias="from")]
    to: Positive
    step: Annotated[
        Annotated[Positive, Tag("added")]
        | Annotated[str, Field(pattern=r"^x[2-9][0-9]*$|^x1[0-9]+$"), Tag("multiplied")],
        Discriminator(_added_or_multiplied),
    ] = "x2"
    """Added, or with a leading ``x`` multiplied."""


def _list_or_range(value: Any) -> str | None:
    return "list" if isinstance(value, list) else "range" if isinstance(value, dict | RangeYaml) else None


ConcYaml = Annotated[
    Annotated[list[Positive], Field(min_length=1, max_length=1000), Tag("list")] | Annotated[RangeYaml, Tag("range")],
    Discriminator(_list_or_range),
]


class ServingYaml(Yaml):
    """A file under ``configs/serving/``; its stem is the config's name."""

    extends: Name | None = None
    """Another config, whose keys hold where this file does not set them."""
    description: Annotated[str, Field(max_length=500)] = ""
    image: NonEmpty | None = None
    model: ModelYaml
    serve: NonEmpty
    gpus: Gpus | None = None
    """GPUs per replica; default 1, or 0 for an engine that uses none."""
    replicas: Replicas = 1
    env: Env = {}
    router: RouterYaml | None = None
    storage: dict[Name, NonEmpty] = {}
    scenario: Name
    conc: ConcYaml
    duration_s: Seconds | None = None
    """Length of the measured phase instead of the scenario's."""
    cluster: Annotated[Names, BeforeValidator(_one_or_many, json_schema_input_type=Name | Names)]
    slo: SloYaml = SloYaml()
    expect: ExpectYaml = ExpectYaml()
    cache: Literal["fresh", "warm", "carry"] = "fresh"
    repeats: Repeats = 1
    evals: Annotated[list[Name], Field(max_length=100)] = []
    """Accuracy benchmarks of aiperf that sweeps with evaluations run."""
    timeouts: TimeoutsYaml = TimeoutsYaml()


class GpusYaml(Yaml):
    kind: NonEmpty
    count: Positive


class ClusterYaml(Yaml):
    """An entry of ``configs/clusters.yaml``."""

    description: str = ""
    runs_on: Annotated[Labels, BeforeValidator(_one_or_many, json_schema_input_type=NonEmpty | Labels)]
    runtime: Literal["process", "docker", "slurm"]
    gpus: GpusYaml | None = None
    """GPUs of one node; left out where there are none."""
    nodes: Positive = 1
    features: list[Literal["router", "storage"]] = []
    storage: dict[Name, NonEmpty] = {}
    max_parallel: Positive | None = None


class LengthYaml(Yaml):
    """Length of a phase; the first limit that is reached ends it."""

    conversations: Positive | None = None
    requests: Positive | None = None
    duration_s: Seconds | None = None


class ScenarioYaml(Yaml):
    """An entry of ``configs/scenarios.yaml``."""

    description: str = ""
    dataset: Name
    endpoint_type: Literal["chat", "completions"] = "chat"
    streaming: bool = True
    sampling: Literal["sequential", "random", "shuffle"] = "sequential"
    warmup: LengthYaml | None = None
    load: LengthYaml
    seed: Seed = 1
    request_timeout_s: Seconds = 600
    error_rate_limit: Share = 0.01
    max_imbalance: Annotated[float, Field(ge=1, le=1000)] | None = None
    unique_prompts: bool = False


class DatasetYaml(Yaml):
    """An entry of ``configs/datasets.lock.yaml``: generated, local, or on the Hugging Face Hub."""

    description: str = ""
    format: Literal["multi_turn", "single_turn", "raw_payload", "mooncake_trace"] = "multi_turn"
    sha256: Sha256
    bytes: Annotated[int, Field(ge=1, le=2**53)] | None = None
    generator: Name | None = None
    arguments: dict[str, Any] = {}
    path: NonEmpty | None = None
    repo: NonEmpty | None = None
    revision: Revision | None = None
    file: NonEmpty | None = None
    rooms_file: NonEmpty | None = None
    rooms_sha256: Sha256 | None = None


class ClustersYaml(Yaml):
    clusters: dict[Name, ClusterYaml]


class ScenariosYaml(Yaml):
    scenarios: dict[Name, ScenarioYaml]


class DatasetsYaml(Yaml):
    datasets: dict[Name, DatasetYaml]

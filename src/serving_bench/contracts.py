"""Frozen, versioned contracts between render, launch and analyze.

render writes a ``Plan`` per config and cluster, launch turns a plan into a run
directory whose ``status.json`` is a ``RunStatus`` and whose points each have a
``point.json`` (``PointResult``). The report of analyze is in ``report_contract``.
Times ending in ``_s`` are seconds, ``_ms`` milliseconds, ``_ns`` nanoseconds
since the Unix epoch.
"""

from __future__ import annotations

import hashlib
import json
import re
from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

PLAN_VERSION: Literal[1] = 1
STATUS_VERSION: Literal[1] = 1


def _startable(words: tuple[str, ...]) -> tuple[str, ...]:
    if not words or not words[0]:
        raise ValueError("a command needs a first word")
    if any("\0" in word for word in words):
        raise ValueError("a word of a command cannot hold a NUL")
    return words


def _exportable(env: dict[str, str]) -> dict[str, str]:
    for name, value in env.items():
        if not name or "=" in name or "\0" in name + value:
            raise ValueError(f"not an environment variable: {name!r:.80}")
    return env


def _distinct(numbers: tuple[int, ...]) -> tuple[int, ...]:
    if len(set(numbers)) != len(numbers):
        raise ValueError("a concurrency is named twice")
    return numbers


def _pattern(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise ValueError(f"not a regular expression: {error}") from error
    return text


MAX_CONC = 1_000_000
Argv = Annotated[tuple[str, ...], AfterValidator(_startable)]
Env = Annotated[dict[str, str], AfterValidator(_exportable)]
Conc = Annotated[int, Field(ge=1, le=MAX_CONC)]
Pattern = Annotated[str, AfterValidator(_pattern)]
Seconds = Annotated[float, Field(gt=0)]
Nanoseconds = Annotated[int, Field(ge=0, lt=2**63)]
"""Nanoseconds since the Unix epoch."""


class Contract(BaseModel):
    """Base of all contract models: frozen, unknown fields are an error."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, defer_build=True)


class Runtime(StrEnum):
    """How the processes of a deployment are run."""

    PROCESS = "process"
    DOCKER = "docker"
    SLURM = "slurm"


class CacheState(StrEnum):
    """What the prefix cache holds when a point starts.

    ``fresh``: nothing (engines and router are started anew for the point);
    ``warm``: what the scenario's warm-up put there after a fresh start;
    ``carry``: whatever the point before left.
    """

    FRESH = "fresh"
    WARM = "warm"
    CARRY = "carry"


class Mode(StrEnum):
    """What a run of a plan measures: load points, accuracy points (``Plan.evals``), or both."""

    PERFORMANCE = "performance"
    EVALS = "evals"
    BOTH = "both"


ACCURACY_BENCHMARKS = (
    "mmlu",
    "mmlu_pro",
    "aime",
    "hellaswag",
    "bigbench",
    "aime24",
    "aime25",
    "math_500",
    "gsm8k",
    "gpqa_diamond",
    "lcb_codegeneration",
)
"""What aiperf 0.13 takes for ``--accuracy-benchmark``. Its help shows some with hyphens, which it then refuses."""


class ClusterSpec(Contract):
    """Where the plan runs, resolved from ``configs/clusters.yaml``."""

    name: str
    runs_on: tuple[str, ...]
    runtime: Runtime
    gpu_kind: str | None = None
    gpus_per_node: int = 0
    nodes: int = 1
    features: tuple[str, ...] = ()
    storage: dict[str, str] = Field(default_factory=dict)
    max_parallel: int | None = None


class ProcessSpec(Contract):
    """A command line of the config: argv as written, and its environment."""

    kind: str
    """Registry name, such as ``dynamo.mocker`` or ``dynamo.frontend``."""
    argv: Argv
    env: Env = Field(default_factory=dict)
    image: str | None = None


class ModelSpec(Contract):
    """The model: a Hugging Face id with revision, or a local folder."""

    served_name: str
    id: str | None = None
    revision: str | None = None
    path: str | None = None
    """Local folder, relative to the repository root unless absolute."""


class DatasetSpec(Contract):
    """The dataset's lock entry; ``sha256`` is of the conversations file."""

    id: str
    format: str
    """aiperf's ``--custom-dataset-type``, such as ``multi_turn``."""
    sha256: str
    bytes: int | None = None
    repo: str | None = None
    revision: str | None = None
    file: str | None = None
    path: str | None = None
    generator: str | None = None
    arguments: dict[str, Any] = Field(default_factory=dict)
    rooms_file: str | None = None
    """Path of the rooms plan beside a dataset that is not generated."""
    rooms_sha256: str | None = None
    """Digest of the rooms plan CSV (``conversation_id,room,room_turn``), where there is one."""


class WarmupSpec(Contract):
    """Length of the warm-up phase: one of the three; none set means no warm-up."""

    conversations: int | None = None
    requests: int | None = None
    duration_s: float | None = None


class LoadSpec(Contract):
    """Length of the profiling phase: at least one of the three."""

    conversations: int | None = None
    requests: int | None = None
    duration_s: float | None = None


class ScenarioSpec(Contract):
    """The traffic, resolved from ``configs/scenarios.yaml``."""

    name: str
    dataset: DatasetSpec
    endpoint_type: str = "chat"
    streaming: bool = True
    sampling: Literal["sequential", "random", "shuffle"] = "sequential"
    warmup: WarmupSpec = WarmupSpec()
    load: LoadSpec
    seed: int = 1
    request_timeout_s: float = 600.0
    error_rate_limit: float = 0.01
    """Share of failed requests above which a point is INVALID."""
    max_imbalance: float | None = None
    """Largest allowed ratio of the busiest replica's requests to the mean."""
    unique_prompts: bool = False


class Slo(Contract):
    """Service-level objectives; a missing one is not checked."""

    ttft_p50_ms: float | None = None
    ttft_p90_ms: float | None = None
    ttft_p95_ms: float | None = None
    ttft_p99_ms: float | None = None
    itl_p95_ms: float | None = None
    error_rate: float | None = None


class Expect(Contract):
    """Patterns (regular expressions) that must appear in a log before load counts."""

    router_log: tuple[Pattern, ...] = ()
    server_log: tuple[Pattern, ...] = ()


class Timeouts(Contract):
    """Deadlines in seconds."""

    ready_s: Seconds = 1800.0
    point_s: Seconds = 3600.0
    stop_s: Seconds = 60.0


class Plan(Contract):
    """A config with everything resolved: what launch runs and analyze reports on."""

    schema_version: Literal[1] = PLAN_VERSION
    config: str
    description: str = ""
    source: str
    """Path of the serving YAML, relative to the repository root where possible."""
    cluster: ClusterSpec
    model: ModelSpec
    framework: str
    """``vllm``, ``sglang``, ``trtllm`` or ``mocker``."""
    router_profile: str
    """``dynamo`` or ``none``."""
    engine: ProcessSpec
    router: ProcessSpec | None = None
    gpus: int = Field(default=0, ge=0)
    """GPUs per replica; 0 where the engine uses none."""
    replicas: int = Field(default=1, ge=1)
    storage: dict[str, str] = Field(default_factory=dict)
    scenario: ScenarioSpec
    conc: Annotated[tuple[Conc, ...], Field(min_length=1), AfterValidator(_distinct)]
    repeats: int = Field(default=1, ge=1)
    cache: CacheState = CacheState.FRESH
    slo: Slo = Slo()
    expect: Expect = Expect()
    timeouts: Timeouts = Timeouts()
    evals: tuple[str, ...] = ()
    """Accuracy benchmarks of the config, each a point where ``mode`` asks for them."""
    mode: Mode = Mode.PERFORMANCE
    overrides: dict[str, str] = Field(default_factory=dict)
    """What was not taken from the file: key path → value, from the command line or a sweep label."""
    comparability: str
    """Hash over what must be equal for two runs to be compared."""
    workload: str
    """Hash over dataset, scenario and seed."""


class Stage(StrEnum):
    """Stages of a run in their order."""

    PLANNED = "planned"
    LEASED = "leased"
    STARTING = "starting"
    READY = "ready"
    LOADING = "loading"
    STOPPING = "stopping"
    DONE = "done"


class Outcome(StrEnum):
    """How a run ended; ``running`` until it has."""

    RUNNING = "running"
    PASSED = "passed"
    FAILED = "failed"
    INTERRUPTED = "interrupted"


class RunStatus(Contract):
    """``status.json``: written at every change of stage."""

    schema_version: Literal[1] = STATUS_VERSION
    outcome: Outcome
    stage: Stage
    """The stage the run is in, or was in when it ended otherwise than by passing."""
    code: str | None = None
    message: str = ""
    hint: str | None = None
    evidence: tuple[str, ...] = ()
    retriable: bool = False
    signal: int | None = None
    """Number of the signal that cancelled the run; the exit status is 128 + it."""
    started_ns: int
    updated_ns: int
    timings_s: dict[str, float] = Field(default_factory=dict)
    """Seconds spent per stage or named part."""


class ReplicaInfo(Contract):
    """One engine replica of a run."""

    index: int
    endpoint: str
    """Base URL of the replica's metrics and health server, without ``/metrics``."""
    worker_ids: tuple[str, ...] = ()
    """Router-side worker ids (decimal) that this replica had, one per start."""


class PointResult(Contract):
    """``point.json``: what launch knows about one concurrency of a run."""

    schema_version: Literal[1] = STATUS_VERSION
    conc: int
    repeat: int = 0
    outcome: Outcome
    code: str | None = None
    message: str = ""
    client_argv: tuple[str, ...]
    client_exit: int | None = None
    started_ns: Nanoseconds
    """Wall clock when the load generator was started."""
    ended_ns: Nanoseconds | None = None
    clock_step_s: float = Field(default=0.0, ge=-1e10, le=1e10)
    """Wall-clock time minus monotonic time over the point: a step of the clock."""
    replicas: tuple[ReplicaInfo, ...] = ()
    router_endpoint: str | None = None
    replica_exits: dict[str, int] = Field(default_factory=dict)
    """Replica index (or ``router``) → exit status, for those that ended during the point."""


def digest(value: Any) -> str:
    """Short, stable hash of JSON-like data: 16 hex digits of SHA-256 over canonical JSON."""
    canonical = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return hashlib.sha256(canonical.encode()).hexdigest()[:16]


def workload_hash(scenario: ScenarioSpec) -> str:
    """Hash over what is sent: dataset content, traffic shape and seed, not the names."""
    data = scenario.model_dump(mode="json", exclude={"name", "error_rate_limit", "max_imbalance", "dataset"})
    content = {"sha256": scenario.dataset.sha256, "rooms": scenario.dataset.rooms_sha256}
    return digest({"dataset": content, "format": scenario.dataset.format, "traffic": data})


def comparability_hash(workload: str, cluster: ClusterSpec, model: ModelSpec, total_gpus: int) -> str:
    """Hash over what must be equal for two runs to be compared.

    That is the workload, the model, the kind and number of GPUs, and the
    runtime: not the engine's or the router's flags, images or versions, which
    are what people compare.
    """
    machine = {"gpu": cluster.gpu_kind, "gpus": total_gpus, "nodes": cluster.nodes, "cluster": cluster.name}
    return digest(
        {
            "workload": workload,
            "model": model.model_dump(mode="json"),
            "machine": machine,
            "runtime": cluster.runtime.value,
        }
    )

"""From a plan and a block of ports to the processes of a deployment. Pure.

Each process is described by what is added to the launcher's own, scrubbed
environment; nothing that belongs to a replica reaches the router, or the other
way round.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from serving_bench.contracts import Plan, ProcessSpec
from serving_bench.engines.base import LaunchableEngine, ModelSource, ReplicaPorts, flag_values
from serving_bench.errors import InputError, SystemUnderTestError
from serving_bench.launch.engine import engine_of

LOOPBACK = "127.0.0.1"
ROUTER = "router"
ROUTER_KINDS = ("dynamo.frontend",)


@dataclass(frozen=True)
class PortMap:
    """Who gets which port of a leased block."""

    router: int
    replicas: tuple[ReplicaPorts, ...]


@dataclass(frozen=True)
class _Share:
    """What one replica has to itself."""

    index: int
    ports: ReplicaPorts
    gpus: tuple[str, ...]


@dataclass(frozen=True)
class Folders:
    """Absolute folders of one start of a deployment."""

    root: Path
    """Repository root: working directory of all processes, base of relative paths."""
    out: Path
    """The run directory, which holds the logs."""
    home: Path
    """A private HOME that is removed with the run."""
    tmp: Path
    """A private TMPDIR that is removed with the run."""
    discovery: Path
    """Dynamo's file-backed discovery store."""
    hf_home: Path
    """The user's Hugging Face cache, which a private HOME must not hide."""
    trace: Path
    """Base of the request trace's files, to which Dynamo adds ``.NNNNNN.jsonl.gz``."""


@dataclass(frozen=True)
class ManagedProcess:
    """A process to start: argv, what is added to the environment, where it is seen."""

    name: str
    argv: tuple[str, ...]
    env: dict[str, str]
    log: Path
    ports: tuple[int, ...]
    base_url: str
    index: int | None = None
    """Replica index; None for the router."""
    gpus: tuple[str, ...] = ()

    @property
    def health_url(self) -> str:
        return f"{self.base_url}/health"

    @property
    def metrics_url(self) -> str:
        return f"{self.base_url}/metrics"


@dataclass(frozen=True)
class Topology:
    """All processes of a deployment."""

    replicas: tuple[ManagedProcess, ...]
    router: ManagedProcess
    served_name: str

    @property
    def processes(self) -> tuple[ManagedProcess, ...]:
        return (*self.replicas, self.router)


def stride_of(plan: Plan) -> int:
    """Ports per replica in the areas that engines index by rank."""
    return max(1, plan.gpus)


def block_size(plan: Plan) -> int:
    """Ports that a deployment of this plan needs."""
    return 1 + plan.replicas * (1 + 2 * stride_of(plan))


def port_map(plan: Plan, base: int) -> PortMap:
    """Lay the block out: router, system ports, KV-event ports, side-channel ports."""
    stride, count = stride_of(plan), plan.replicas
    events = base + 1 + count
    channels = events + count * stride
    replicas = tuple(
        ReplicaPorts(base + 1 + index, events + index * stride, channels + index * stride) for index in range(count)
    )
    return PortMap(base, replicas)


def model_source(plan: Plan, root: Path) -> ModelSource:
    """The model as engines and aiperf are told; ``InputError`` (SB-PLAN-MODEL) where it is not there."""
    model = plan.model
    if model.path is not None:
        folder = (root / model.path).resolve()
        if not folder.is_dir():
            raise InputError(f"{folder}: no such model folder", code="SB-PLAN-MODEL", hint="check model.path")
        return ModelSource(str(folder), model.served_name)
    if model.id is None:
        raise InputError("the plan's model has neither an id nor a path", code="SB-PLAN-MODEL")
    return ModelSource(model.id, model.served_name, model.revision)


def gpu_slices(plan: Plan, visible: str | None) -> tuple[tuple[str, ...], ...]:
    """GPUs per replica, cut from those that the launcher itself may see.

    ``visible`` is the launcher's CUDA_VISIBLE_DEVICES; without it GPUs count from 0.
    """
    wanted = plan.gpus * plan.replicas
    devices = visible.split(",") if visible is not None else [str(number) for number in range(wanted)]
    devices = [device.strip() for device in devices if device.strip()]
    if len(devices) < wanted:
        raise SystemUnderTestError(
            f"{plan.replicas} replicas of {plan.gpus} GPUs need {wanted}, CUDA_VISIBLE_DEVICES lists {len(devices)}",
            code="SB-GPUS",
        )
    return tuple(tuple(devices[i * plan.gpus : (i + 1) * plan.gpus]) for i in range(plan.replicas))


def check_plan(plan: Plan, root: Path) -> None:
    """Raise ``InputError`` for what can be told before anything is started."""
    engine_of(plan.engine.kind)
    _router_spec(plan)
    model_source(plan, root)


def build(plan: Plan, ports: PortMap, folders: Folders, namespace: str, visible: str | None = None) -> Topology:
    """All processes of the plan. Raises ``InputError`` for an engine or router that launch does not know."""
    router = _router_spec(plan)
    slices = gpu_slices(plan, visible)
    shares = [_Share(index, ports.replicas[index], slices[index]) for index in range(plan.replicas)]
    replicas = tuple(_replica(plan, share, folders, namespace) for share in shares)
    return Topology(replicas, _router(router, ports.router, folders, namespace), plan.model.served_name)


def _router_spec(plan: Plan) -> ProcessSpec:
    if plan.router is None or plan.router.kind not in ROUTER_KINDS:
        found = plan.router.kind if plan.router else "none"
        raise InputError(
            f"{plan.engine.kind} is reached through a router ({', '.join(ROUTER_KINDS)}), the plan has {found}",
            code="SB-PLAN-ROUTER",
        )
    return plan.router


def _common_env(folders: Folders, namespace: str, *, keeps_home: bool) -> dict[str, str]:
    """What every Dynamo process of the run gets: discovery in a private folder, all hosts on loopback."""
    env = {
        "DYN_NAMESPACE": namespace,
        "DYN_DISCOVERY_BACKEND": "file",
        "DYN_FILE_KV": str(folders.discovery),
        "DYN_REQUEST_PLANE": "tcp",
        "DYN_EVENT_PLANE": "zmq",
        "DYN_EVENT_PLANE_HOST": LOOPBACK,
        "DYN_TCP_RPC_HOST": LOOPBACK,
        "DYN_SDK_DISABLE_ANSI_LOGGING": "1",
        "PYTHONUNBUFFERED": "1",
        "TMPDIR": str(folders.tmp),
    }
    # Dynamo keeps a copy of every model's tokenizer under ~/.cache/dynamo and never removes it.
    home = {} if keeps_home else {"HOME": str(folders.home), "HF_HOME": str(folders.hf_home)}
    return env | home


def _replica(plan: Plan, share: _Share, folders: Folders, namespace: str) -> ManagedProcess:
    engine, own = engine_of(plan.engine.kind), share.ports
    env = {
        **plan.engine.env,
        **_common_env(folders, namespace, keeps_home=engine.keeps_home),
        "DYN_SYSTEM_HOST": LOOPBACK,
        "DYN_SYSTEM_PORT": str(own.system),
        **engine.environment(own),
    }
    if share.gpus:
        env["CUDA_VISIBLE_DEVICES"] = ",".join(share.gpus)
    return ManagedProcess(
        name=f"replica.{share.index}",
        argv=(*plan.engine.argv, *engine.arguments(model_source(plan, folders.root)), *_events(plan, engine, own)),
        env=env,
        log=folders.out / f"server.{share.index}.log",
        ports=own.ports(stride_of(plan)),
        base_url=f"http://{LOOPBACK}:{own.system}",
        index=share.index,
        gpus=share.gpus,
    )


def _events(plan: Plan, engine: LaunchableEngine, ports: ReplicaPorts) -> tuple[str, ...]:
    """Flags that place a replica's KV events; a single replica may have the config's own."""
    own = flag_values(plan.engine.argv, engine.kv_event_flags)
    return () if own else engine.event_arguments(ports)


def _router(spec: ProcessSpec, port: int, folders: Folders, namespace: str) -> ManagedProcess:
    trace = {
        "DYN_REQUEST_TRACE": "1",
        "DYN_REQUEST_TRACE_SINKS": "file",
        "DYN_REQUEST_TRACE_FILE_PATH": str(folders.trace),
    }
    return ManagedProcess(
        name=ROUTER,
        argv=(*spec.argv, "--http-host", LOOPBACK, "--http-port", str(port)),
        env={**spec.env, **_common_env(folders, namespace, keeps_home=False), **trace},
        log=folders.out / "router.log",
        ports=(port,),
        base_url=f"http://{LOOPBACK}:{port}",
    )

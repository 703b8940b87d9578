"""A deployment of a plan: leased, started, awaited, stopped, as often as the cache state asks for."""

from __future__ import annotations

import shlex
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from serving_bench.contracts import Plan, ReplicaInfo, Stage
from serving_bench.errors import SystemUnderTestError
from serving_bench.files import dump_json, write_atomic
from serving_bench.launch import logs, ports
from serving_bench.launch.environ import masked_argv
from serving_bench.launch.readiness import WorkerIds, await_ready
from serving_bench.launch.rundir import Console, Recorder
from serving_bench.launch.topology import Folders, Topology, block_size, build, port_map
from serving_bench.launch.watch import Watch

ATTEMPTS = 3
_ROUTER_STOP_S = 10.0
_CANCEL_STOP_S = (2.0, 2.0)
"""Router and replicas on cancel: with aiperf's and the last sweep's share it stays under 8 s."""


@dataclass
class Deployment:
    """What stands right now: a lease, the processes, the worker ids. ``up`` and ``down`` may alternate."""

    plan: Plan
    folders: Folders
    namespace: str
    visible: str | None
    watch: Watch
    recorder: Recorder
    console: Console
    topology: Topology | None = None
    workers: dict[int, tuple[str, ...]] = field(default_factory=dict)
    """Replica index → all worker ids it has had, one per start."""
    starts: int = 0
    _lease: ports.Lease | None = None
    _attempts: list[dict[str, object]] = field(default_factory=list)

    def up(self) -> Topology:
        """Start everything and wait until it is ready; a stolen port gets a fresh block, ``ATTEMPTS`` times in all."""
        avoid: list[range] = []
        for attempt in range(1, ATTEMPTS + 1):
            try:
                return self._start(avoid)
            except SystemUnderTestError as error:
                if error.code != "SB-PORT-IN-USE" or attempt == ATTEMPTS or self._lease is None:
                    raise
                avoid.append(range(self._lease.base, self._lease.base + self._lease.size))
                self.console.say(f"  {error.message}: {error.evidence[0]}; attempt {attempt + 1} of {ATTEMPTS}")
                self.recorder.event("port-in-use", attempt=attempt, message=error.message, evidence=error.evidence)
                self.down()
        raise AssertionError("the loop above returns or raises")

    def _start(self, avoid: list[range]) -> Topology:
        self.watch.cancel.check()
        self._lease = ports.acquire(block_size(self.plan), avoid=avoid, pause=self.watch.cancel.sleep)
        layout = port_map(self.plan, self._lease.base)
        folders = self._fresh_folders()
        topology = build(self.plan, layout, folders, self.namespace, self.visible)
        self._record_ports(topology)
        self.recorder.stage(Stage.LEASED, f"ports {self._lease.base}-{self._lease.ports[-1]}")
        self.recorder.stage(
            Stage.STARTING, f"{self.plan.replicas} x {self.plan.engine.kind}, {_router_kind(self.plan)}"
        )
        for process in topology.processes:
            self.watch.cancel.check()
            self._lease.release_sockets(process.ports)
            self.console.say(f"  {process.name}: {shlex.join(masked_argv(process.argv))}")
            self.watch.runtime.start(process)
        begun = time.monotonic()
        found = await_ready(topology, self.watch, self.plan.timeouts.ready_s)
        self._check_logs()
        self._note_workers(found)
        self.topology = topology
        self.recorder.stage(Stage.READY, f"{self.plan.replicas} replicas after {time.monotonic() - begun:.1f} s")
        return topology

    def _fresh_folders(self) -> Folders:
        """A discovery folder and trace files of its own for every start: nothing of the last one is found."""
        start = self.starts
        self.starts += 1
        folders = replace(
            self.folders,
            discovery=self.folders.discovery / f"start{start}",
            trace=self.folders.trace / f"start{start}.jsonl",
        )
        for folder in (folders.discovery, folders.trace.parent, folders.home, folders.tmp):
            folder.mkdir(parents=True, exist_ok=True)
        return folders

    def _record_ports(self, topology: Topology) -> None:
        entry: dict[str, object] = {"start": self.starts - 1}
        entry |= {process.name: list(process.ports) for process in topology.processes}
        self._attempts.append(entry)
        floor, ceiling = ports.ephemeral_range()
        data = {"ephemeral_range": [floor, ceiling], "starts": self._attempts}
        write_atomic(self.folders.out / "ports.json", dump_json(data))

    def _check_logs(self) -> None:
        """What the plan expects in the logs must be there, and no traceback, before load counts."""
        router = self.watch.runtime.child("router")
        replicas = [self.watch.runtime.child(f"replica.{index}") for index in range(self.plan.replicas)]
        wanted = [(router, self.plan.expect.router_log)] + [(child, self.plan.expect.server_log) for child in replicas]
        for child, patterns in wanted:
            missing = logs.missing_patterns(child.log, patterns, start=child.log_offset)
            if missing:
                raise SystemUnderTestError(
                    f"{child.name} is ready, but its log has no line that matches {missing[0]!r}",
                    code="SB-EXPECT-MISSING",
                    evidence=logs.tail(child.log, start=child.log_offset),
                )
            traceback = logs.traceback_lines(child.log, start=child.log_offset)
            if traceback:
                raise SystemUnderTestError(
                    f"{child.name} logged a traceback while it started", code="SB-LOG-TRACEBACK", evidence=traceback
                )

    def _note_workers(self, found: WorkerIds) -> None:
        for index, ids in found.items():
            self.workers[index] = (*self.workers.get(index, ()), *ids)
            self.recorder.event("ready", process=f"replica.{index}", worker_ids=list(ids))

    def replicas(self) -> tuple[ReplicaInfo, ...]:
        """The replicas that stand now, with the worker ids of this start and those before."""
        processes = self.topology.replicas if self.topology else ()
        return tuple(
            ReplicaInfo(index=number, endpoint=process.base_url, worker_ids=self.workers.get(number, ()))
            for number, process in enumerate(processes)
        )

    def down(self) -> None:
        """Stop everything and give the ports back. Quick when cancelled; harmless when nothing stands."""
        stop_s = self.plan.timeouts.stop_s
        normal = (min(stop_s, _ROUTER_STOP_S), stop_s)
        router_s, replicas_s = normal if self.watch.cancel.number is None else _CANCEL_STOP_S
        try:
            self.watch.runtime.stop(router_s=router_s, replicas_s=replicas_s)
        finally:
            self.topology = None
            if self._lease is not None:
                self._lease.close()
                self._lease = None

    def ports(self) -> frozenset[int]:
        """All leased ports that processes of the deployment were given."""
        processes = self.topology.processes if self.topology else ()
        return frozenset(port for process in processes for port in process.ports)

    def names(self) -> Mapping[int, str]:
        """Pid → name of the processes that were started."""
        processes = self.topology.processes if self.topology else ()
        return {self.watch.runtime.child(process.name).pid: process.name for process in processes}


def _router_kind(plan: Plan) -> str:
    return plan.router.kind if plan.router else "no router"

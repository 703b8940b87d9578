"""When is a deployment ready? Not when it says so: when it has answered.

Every replica healthy, the router knows exactly the planned replicas, the
router's worker ids are those of these very replicas, and K real completions in
a row came back. Answers such as 503 and 404 in the meantime are part of a start.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from serving_bench.clients import http
from serving_bench.errors import SystemUnderTestError
from serving_bench.launch import logs
from serving_bench.launch.runtimes.process import ProcessRuntime
from serving_bench.launch.topology import ManagedProcess, Topology
from serving_bench.launch.watch import Watch

COMPLETIONS = 3
_POLL_S = 0.1
_PAUSE_S = 0.2
_HTTP_S = 3.0
_COMPLETION_S = 30.0
_WORKER_ID = re.compile(r'\bworker_id="([0-9a-f]+)"')


@dataclass(frozen=True)
class Missing:
    """What is still waited for, and whose log would explain it."""

    what: str
    process: str


WorkerIds = Mapping[int, tuple[str, ...]]
"""Replica index → its worker ids as the router knows them (decimal); empty where they cannot be known."""


def await_ready(topology: Topology, watch: Watch, deadline_s: float) -> WorkerIds:
    """Wait until the deployment is ready.

    Raises ``SystemUnderTestError``: SB-READY-TIMEOUT with the log tail of what
    is missing, SB-ENGINE-EXIT or SB-ROUTER-EXIT as soon as a process ends,
    SB-PORT-IN-USE; and ``InterruptedRunError``.
    """
    end = time.monotonic() + deadline_s
    watch.heartbeat.restart()
    missing = Missing("the first answer", topology.replicas[0].name)

    def look() -> None:
        watch.runtime.check(loading=False)
        watch.runtime.check_ports()
        watch.heartbeat.beat(lambda: f"waiting for {missing.what}")
        if time.monotonic() > end:
            raise _timeout(missing, watch.runtime, deadline_s)
        watch.cancel.sleep(_POLL_S)

    while True:
        answer = _in_background(lambda: probe(topology), look)
        if not isinstance(answer, Missing):
            watch.runtime.check(loading=False)
            watch.runtime.check_ports()
            return answer
        missing = answer
        pause = time.monotonic() + _PAUSE_S
        while time.monotonic() < pause:
            look()


def _timeout(missing: Missing, runtime: ProcessRuntime, deadline_s: float) -> SystemUnderTestError:
    child = runtime.child(missing.process)
    return SystemUnderTestError(
        f"not ready after {deadline_s:g} s: no {missing.what}",
        code="SB-READY-TIMEOUT",
        hint="raise timeouts.ready-s if the start is only slow",
        evidence=logs.tail(child.log, start=child.log_offset),
    )


def _in_background(call: Callable[[], WorkerIds | Missing], look: Callable[[], None]) -> WorkerIds | Missing:
    """Run a call that may hang in a thread, and watch the processes meanwhile."""
    results: list[WorkerIds | Missing] = []
    failures: list[BaseException] = []

    def target() -> None:
        try:
            results.append(call())
        except BaseException as error:  # noqa: BLE001  raised again in the main thread
            failures.append(error)

    thread = threading.Thread(target=target, daemon=True, name="readiness-probe")
    thread.start()
    while thread.is_alive():
        look()
    if failures:
        raise failures[0]
    return results[0]


def probe(topology: Topology) -> WorkerIds | Missing:
    """One round of questions, up to the first that is not answered as it should be."""
    for process in topology.replicas:
        reply = http.get(process.health_url, timeout_s=_HTTP_S)
        if not reply.ok:
            return Missing(f"{process.name} healthy ({_short(reply)})", process.name)
    reply = http.get(topology.router.health_url, timeout_s=_HTTP_S)
    known = instance_ids(reply.json())
    if len(known) != len(topology.replicas):
        shown = f"{len(known)} of {len(topology.replicas)}" if reply.ok else _short(reply)
        return Missing(f"replicas registered at the router ({shown})", topology.router.name)
    ids = {process.index or 0: _worker_ids(process) for process in topology.replicas}
    strangers = [f"replica.{index}" for index, own in ids.items() if own and not known.issuperset(own)]
    if strangers:
        return Missing(f"{strangers[0]} known to the router by its worker id", topology.router.name)
    for _ in range(COMPLETIONS):
        reply = _complete(topology)
        if not reply.ok:
            return Missing(f"{COMPLETIONS} completions in a row ({_short(reply)})", topology.router.name)
    return ids


def _short(reply: http.Reply) -> str:
    return f"HTTP {reply.status}" if reply.status else reply.body.partition(":")[0]


def instance_ids(health: Any) -> frozenset[str]:
    """Decimal ids of the ``generate`` instances in the frontend's /health answer."""
    instances = health.get("instances") if isinstance(health, dict) else None
    return frozenset(
        str(instance.get("instance_id"))
        for instance in instances or ()
        if isinstance(instance, dict) and instance.get("endpoint") == "generate"
    )


def worker_ids(metrics: str) -> tuple[str, ...]:
    """Worker ids in a replica's metrics: hexadecimal there, decimal (as the router has them) here."""
    found = {
        str(int(match.group(1), 16))
        for line in metrics.splitlines()
        if 'dynamo_endpoint="generate"' in line and (match := _WORKER_ID.search(line))
    }
    return tuple(sorted(found))


def _worker_ids(process: ManagedProcess) -> tuple[str, ...]:
    reply = http.get(process.metrics_url, timeout_s=_HTTP_S)
    return worker_ids(reply.body) if reply.ok else ()


def _complete(topology: Topology) -> http.Reply:
    """One short, real completion through the router; its prompt shares nothing with the workload."""
    payload = {
        "model": topology.served_name,
        "messages": [{"role": "user", "content": "ready?"}],
        "max_tokens": 2,
    }
    return http.post_json(f"{topology.router.base_url}/v1/chat/completions", payload, timeout_s=_COMPLETION_S)

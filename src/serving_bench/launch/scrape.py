"""Own scrapes of every metrics endpoint, before and after the load."""

from __future__ import annotations

from pathlib import Path

from serving_bench.clients import http
from serving_bench.files import write_atomic
from serving_bench.launch.topology import Topology

_HTTP_S = 5.0
_ATTEMPTS = 3


def scrape(topology: Topology, folder: Path) -> dict[str, str]:
    """Write ``<folder>/<process>.prom`` for every process; returns name → reason for those that gave nothing."""
    missing = {}
    for process in topology.processes:
        reply = http.Reply(0, "")
        for _ in range(_ATTEMPTS):
            reply = http.get(process.metrics_url, timeout_s=_HTTP_S)
            if reply.ok:
                break
        if reply.ok:
            write_atomic(folder / f"{process.name}.prom", reply.body)
        else:
            missing[process.name] = f"HTTP {reply.status}" if reply.status else reply.body
    return missing

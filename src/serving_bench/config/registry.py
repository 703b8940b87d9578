"""What each engine and router is and can do: the one table that rules and messages read.

How an engine is started (ports, flags, health) is launch's business; here is
what a config may say about it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Engine:
    """An engine that ``serve`` may name."""

    kind: str
    framework: str
    words: tuple[str, ...]
    """First words of ``serve``; ``python3`` stands for any Python."""
    dynamo: bool
    """Registers with Dynamo and is reached through a Dynamo router."""
    replicas: bool
    """The KV-event port can be set per replica, so several may share a router."""
    needs_gpu: bool
    owned_flags: tuple[str, ...] = ()
    """Flags that the launcher sets itself."""


@dataclass(frozen=True)
class Router:
    """A router that ``router.serve`` may name."""

    kind: str
    profile: str
    words: tuple[str, ...]
    owned_flags: tuple[str, ...] = ()


ENGINES: tuple[Engine, ...] = (
    Engine(
        kind="dynamo.vllm",
        framework="vllm",
        words=("python3", "-m", "dynamo.vllm"),
        dynamo=True,
        replicas=True,
        needs_gpu=True,
        owned_flags=("--model", "--served-model-name", "--kv-events-config", "--endpoint"),
    ),
    Engine(
        kind="dynamo.mocker",
        framework="mocker",
        words=("python3", "-m", "dynamo.mocker"),
        dynamo=True,
        replicas=True,
        needs_gpu=False,
        owned_flags=("--model-path", "--model-name", "--zmq-kv-events-ports", "--num-workers", "--endpoint"),
    ),
)

ROUTERS: tuple[Router, ...] = (
    Router(
        kind="dynamo.frontend",
        profile="dynamo",
        words=("python3", "-m", "dynamo.frontend"),
        owned_flags=("--http-host", "--http-port", "--namespace", "--discovery-backend", "--model-name"),
    ),
)

OWNED_ENV: frozenset[str] = frozenset(
    {
        "CUDA_VISIBLE_DEVICES",
        "DYN_DISCOVERY_BACKEND",
        "DYN_EVENT_PLANE",
        "DYN_EVENT_PLANE_HOST",
        "DYN_FILE_KV",
        "DYN_HTTP_HOST",
        "DYN_HTTP_PORT",
        "DYN_KV_EVENT_PORT",
        "DYN_KV_EVENT_PORTS",
        "DYN_NAMESPACE",
        "DYN_REQUEST_PLANE",
        "DYN_REQUEST_TRACE",
        "DYN_REQUEST_TRACE_FILE_PATH",
        "DYN_REQUEST_TRACE_SINKS",
        "DYN_SYSTEM_HOST",
        "DYN_SYSTEM_PORT",
        "DYN_SYSTEM_PORTS",
        "DYN_TCP_RPC_HOST",
        "DYN_VLLM_KV_EVENT_PORT",
        "VLLM_NIXL_SIDE_CHANNEL_HOST",
        "VLLM_NIXL_SIDE_CHANNEL_PORT",
    }
)
"""Environment variables that the launcher sets for each process itself."""

_PYTHON = re.compile(r"(?:.*/)?python(?:3(?:\.\d+)?)?\Z")


def _starts_with(words: Sequence[str], pattern: tuple[str, ...]) -> bool:
    head = ["python3" if _PYTHON.match(word) and index == 0 else word for index, word in enumerate(words)]
    return tuple(head[: len(pattern)]) == pattern


def find_engine(words: Sequence[str]) -> Engine | None:
    """The engine that the first words of a command name."""
    return next((engine for engine in ENGINES if _starts_with(words, engine.words)), None)


def find_router(words: Sequence[str]) -> Router | None:
    """The router that the first words of a command name."""
    return next((router for router in ROUTERS if _starts_with(words, router.words)), None)


def shown(entries: Sequence[Engine] | Sequence[Router]) -> str:
    """The allowed first words, for messages."""
    return ", ".join(repr(" ".join(entry.words)) for entry in entries)

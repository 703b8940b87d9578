"""Which of the engines launch can start."""

from __future__ import annotations

from serving_bench.engines import ENGINES
from serving_bench.engines.base import LaunchableEngine
from serving_bench.errors import InputError


def engine_of(kind: str) -> LaunchableEngine:
    """The engine by its registry name; ``InputError`` (SB-PLAN-ENGINE) names those that can be launched."""
    known = {engine.kind: engine for engine in ENGINES if isinstance(engine, LaunchableEngine)}
    if kind not in known:
        raise InputError(f"launch cannot start engine {kind!r}, it knows: {', '.join(known)}", code="SB-PLAN-ENGINE")
    return known[kind]

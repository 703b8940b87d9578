"""What launch knows about each engine: one module per engine, one row here."""

from __future__ import annotations

from collections.abc import Mapping

from serving_bench.errors import InputError
from serving_bench.launch.engines.base import Engine
from serving_bench.launch.engines.dynamo_mocker import DynamoMocker
from serving_bench.launch.engines.dynamo_vllm import DynamoVllm

ENGINES: Mapping[str, Engine] = {engine.kind: engine for engine in (DynamoMocker(), DynamoVllm())}


def engine_of(kind: str) -> Engine:
    """The engine by its registry name; ``InputError`` (SB-PLAN-ENGINE) names those that can be launched."""
    if kind not in ENGINES:
        raise InputError(
            f"launch cannot start engine {kind!r}, it knows: {', '.join(sorted(ENGINES))}", code="SB-PLAN-ENGINE"
        )
    return ENGINES[kind]

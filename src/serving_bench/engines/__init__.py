"""The engines: one module with one class for each, one row here."""

from __future__ import annotations

from collections.abc import Sequence

from serving_bench.engines.base import Engine
from serving_bench.engines.dynamo_mocker import DynamoMocker
from serving_bench.engines.dynamo_sglang import DynamoSglang
from serving_bench.engines.dynamo_trtllm import DynamoTrtllm
from serving_bench.engines.dynamo_vllm import DynamoVllm
from serving_bench.engines.sglang_server import SglangServer
from serving_bench.engines.vllm_serve import VllmServe
from serving_bench.engines.words import named_by

ENGINES: tuple[Engine, ...] = (
    DynamoVllm(),
    DynamoSglang(),
    DynamoTrtllm(),
    DynamoMocker(),
    VllmServe(),
    SglangServer(),
)


def find_engine(words: Sequence[str]) -> Engine | None:
    """The engine that the first words of a command name."""
    return next((engine for engine in ENGINES if named_by(words, engine.words)), None)

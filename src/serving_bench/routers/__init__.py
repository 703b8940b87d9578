"""The routers: one module with one class for each, one row here."""

from __future__ import annotations

from collections.abc import Sequence

from serving_bench.engines.words import named_by
from serving_bench.routers.base import Router
from serving_bench.routers.dynamo_frontend import DynamoFrontend
from serving_bench.routers.sglang_router import SglangRouter

ROUTERS: tuple[Router, ...] = (DynamoFrontend(), SglangRouter())

NO_ROUTER = "none"
"""Profile of a deployment without a router."""


def find_router(words: Sequence[str]) -> Router | None:
    """The router that the first words of a command name."""
    return next((router for router in ROUTERS if named_by(words, router.words)), None)

"""``sglang-router``: SGLang's router, which also stands before other OpenAI-compatible servers."""

from __future__ import annotations

from serving_bench.routers.base import Router


class SglangRouter(Router):
    kind = "sglang-router"
    profile = "sglang-router"
    words = ("sglang-router",)
    owned_flags = ("--host", "--port", "--prometheus-host", "--prometheus-port", "--worker-urls")

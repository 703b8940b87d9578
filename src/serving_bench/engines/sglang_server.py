"""``python3 -m sglang.launch_server``: SGLang's own OpenAI-compatible server."""

from __future__ import annotations

from serving_bench.engines.base import SGLANG_PARALLEL, Engine


class SglangServer(Engine):
    kind = "sglang"
    framework = "sglang"
    words = ("python3", "-m", "sglang.launch_server")
    routers = ("none", "sglang-router")
    owned_flags = ("--host", "--model", "--model-path", "--port", "--revision", "--served-model-name")
    kv_event_flags = ("--kv-events-config",)
    parallel_flags = SGLANG_PARALLEL
    parallel_elsewhere = ("--config", "--enable-dp-attention")

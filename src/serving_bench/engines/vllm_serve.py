"""``vllm serve``: vLLM's own OpenAI-compatible server."""

from __future__ import annotations

from serving_bench.engines.base import VLLM_PARALLEL, Engine


class VllmServe(Engine):
    kind = "vllm"
    framework = "vllm"
    words = ("vllm", "serve")
    routers = ("none", "sglang-router")
    owned_flags = ("--host", "--model", "--port", "--revision", "--served-model-name", "--uds")
    kv_event_flags = ("--kv-events-config",)
    parallel_flags = VLLM_PARALLEL
    parallel_elsewhere = ("--config", "--data-parallel-rank", "--data-parallel-size-local", "-dpl")
    names_model = True

"""``python3 -m dynamo.sglang``: SGLang as a Dynamo worker."""

from __future__ import annotations

from serving_bench.engines.base import DYNAMO_FLAGS, SGLANG_PARALLEL, Engine


class DynamoSglang(Engine):
    kind = "dynamo.sglang"
    framework = "sglang"
    words = ("python3", "-m", "dynamo.sglang")
    routers = ("dynamo",)
    replicas = False
    owned_flags = ("--model", "--model-path", "--revision", "--served-model-name", *DYNAMO_FLAGS)
    kv_event_flags = ("--kv-events-config",)
    parallel_flags = SGLANG_PARALLEL
    # With DP attention the data-parallel ranks share the tensor-parallel ones' GPUs.
    parallel_elsewhere = ("--config", "--enable-dp-attention")

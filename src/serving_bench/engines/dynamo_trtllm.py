"""``python3 -m dynamo.trtllm``: TensorRT-LLM as a Dynamo worker."""

from __future__ import annotations

from collections.abc import Sequence

from serving_bench.engines.base import DYNAMO_FLAGS, Engine, flag_values


class DynamoTrtllm(Engine):
    kind = "dynamo.trtllm"
    framework = "trtllm"
    words = ("python3", "-m", "dynamo.trtllm")
    routers = ("dynamo",)
    replicas = False
    owned_flags = ("--model-path", "--served-model-name", *DYNAMO_FLAGS)
    parallel_flags = (("--tensor-parallel-size",), ("--pipeline-parallel-size",))
    parallel_elsewhere = ("--extra-engine-args", "--override-engine-args", "--enable-attention-dp")

    def gpus(self, argv: Sequence[str]) -> int | None:
        """As for others, but without any flag the engine's own files may say it."""
        given = any(flag_values(argv, spellings) for spellings in self.parallel_flags)
        return super().gpus(argv) if given else None

"""``python3 -m dynamo.vllm``: vLLM as a Dynamo worker."""

from __future__ import annotations

import json

from serving_bench.engines.base import DYNAMO_FLAGS, VLLM_PARALLEL, LaunchableEngine, ModelSource, ReplicaPorts


class DynamoVllm(LaunchableEngine):
    kind = "dynamo.vllm"
    framework = "vllm"
    words = ("python3", "-m", "dynamo.vllm")
    routers = ("dynamo",)
    owned_flags = ("--model", "--revision", "--served-model-name", *DYNAMO_FLAGS)
    kv_event_flags = ("--kv-events-config",)
    parallel_flags = VLLM_PARALLEL
    parallel_elsewhere = ("--config", "--data-parallel-rank", "--data-parallel-size-local", "-dpl")
    keeps_home = True

    def arguments(self, model: ModelSource) -> tuple[str, ...]:
        revision = () if model.revision is None else ("--revision", model.revision)
        return ("--model", model.location, "--served-model-name", model.served_name, *revision)

    def event_arguments(self, ports: ReplicaPorts) -> tuple[str, ...]:
        # vLLM binds its publisher only where the endpoint holds a wildcard, and connects otherwise:
        # with a loopback address there, publisher and subscriber would both connect, and no event arrive.
        events = {
            "enable_kv_cache_events": True,
            "publisher": "zmq",
            "topic": "kv-events",
            "endpoint": f"tcp://*:{ports.kv_events}",
        }
        return ("--kv-events-config", json.dumps(events, separators=(",", ":")))

    def environment(self, ports: ReplicaPorts) -> dict[str, str]:
        return {
            "VLLM_NIXL_SIDE_CHANNEL_HOST": "127.0.0.1",
            "VLLM_NIXL_SIDE_CHANNEL_PORT": str(ports.side_channel),
        }

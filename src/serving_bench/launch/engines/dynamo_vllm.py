"""``python3 -m dynamo.vllm``: vLLM as a Dynamo worker."""

from __future__ import annotations

import json

from serving_bench.launch.engines.base import ModelSource, ReplicaPorts


class DynamoVllm:
    kind = "dynamo.vllm"
    keeps_home = True

    def arguments(self, model: ModelSource, ports: ReplicaPorts) -> tuple[str, ...]:
        named = ["--model", model.location, "--served-model-name", model.served_name]
        if model.revision is not None:
            named += ["--revision", model.revision]
        # vLLM binds its publisher only where the endpoint holds a wildcard, and connects otherwise:
        # with a loopback address there, publisher and subscriber would both connect, and no event arrive.
        events = {
            "enable_kv_cache_events": True,
            "publisher": "zmq",
            "topic": "kv-events",
            "endpoint": f"tcp://*:{ports.kv_events}",
        }
        return (*named, "--kv-events-config", json.dumps(events, separators=(",", ":")))

    def environment(self, ports: ReplicaPorts) -> dict[str, str]:
        return {
            "VLLM_NIXL_SIDE_CHANNEL_HOST": "127.0.0.1",
            "VLLM_NIXL_SIDE_CHANNEL_PORT": str(ports.side_channel),
        }

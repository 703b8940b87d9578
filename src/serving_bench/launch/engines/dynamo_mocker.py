"""``python3 -m dynamo.mocker``: Dynamo's simulated engine, which needs no GPU."""

from __future__ import annotations

from serving_bench.launch.engines.base import ModelSource, ReplicaPorts


class DynamoMocker:
    kind = "dynamo.mocker"
    keeps_home = False

    def arguments(self, model: ModelSource, ports: ReplicaPorts) -> tuple[str, ...]:
        named = ("--model-path", model.location, "--model-name", model.served_name)
        return (*named, "--zmq-kv-events-ports", str(ports.kv_events))

    def environment(self, ports: ReplicaPorts) -> dict[str, str]:  # noqa: ARG002  the same for every replica
        # Its /health otherwise stays 503 for good, although the endpoint serves.
        return {"DYN_SYSTEM_USE_ENDPOINT_HEALTH_STATUS": '["generate"]'}

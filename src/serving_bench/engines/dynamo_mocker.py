"""``python3 -m dynamo.mocker``: Dynamo's simulated engine, which needs no GPU."""

from __future__ import annotations

from serving_bench.engines.base import DYNAMO_FLAGS, LaunchableEngine, ModelSource, ReplicaPorts


class DynamoMocker(LaunchableEngine):
    kind = "dynamo.mocker"
    framework = "mocker"
    words = ("python3", "-m", "dynamo.mocker")
    routers = ("dynamo",)
    needs_gpu = False
    owned_flags = ("--model-path", "--model-name", "--num-workers", *DYNAMO_FLAGS)
    kv_event_flags = ("--zmq-kv-events-ports",)
    keeps_home = False

    def arguments(self, model: ModelSource) -> tuple[str, ...]:
        return ("--model-path", model.location, "--model-name", model.served_name)

    def event_arguments(self, ports: ReplicaPorts) -> tuple[str, ...]:
        return ("--zmq-kv-events-ports", str(ports.kv_events))

    def environment(self, ports: ReplicaPorts) -> dict[str, str]:  # noqa: ARG002  the same for every replica
        # Its /health otherwise stays 503 for good, although the endpoint serves.
        return {"DYN_SYSTEM_USE_ENDPOINT_HEALTH_STATUS": '["generate"]'}

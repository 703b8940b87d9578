"""``python3 -m dynamo.frontend``: Dynamo's HTTP frontend with its router."""

from __future__ import annotations

from serving_bench.routers.base import Router


class DynamoFrontend(Router):
    kind = "dynamo.frontend"
    profile = "dynamo"
    words = ("python3", "-m", "dynamo.frontend")
    owned_flags = (
        "--discovery-backend",
        "--event-plane",
        "--http-host",
        "--http-port",
        "--model-name",
        "--model-path",
        "--namespace",
        "--namespace-prefix",
        "--request-plane",
    )

"""A small configs/ folder that is right in every way, for tests to break."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

CLUSTERS = """\
clusters:
  node:
    runs-on: [self-hosted, h200]
    runtime: docker
    gpus: {kind: H200, count: 8}
    features: [router, storage]
  bare:
    runs-on: ubuntu-latest
    runtime: process
"""
SCENARIOS = """\
scenarios:
  calls:
    dataset: calls
    load: {duration-s: 1200}
  lost:
    dataset: nowhere
    load: {requests: 10}
"""
DATASETS = f"""\
datasets:
  calls:
    path: calls.jsonl
    sha256: {"a" * 64}
"""
CONFIG = f"""\
description: two replicas
image: registry.example/vllm:0.31.0@sha256:{"b" * 64}
model: {{id: org/model, revision: {"c" * 40}}}
serve: python3 -m dynamo.vllm --tensor-parallel-size 4
gpus: 4
replicas: 2
env: {{VLLM_LOGGING_LEVEL: INFO}}
router:
  serve: python3 -m dynamo.frontend --router-mode kv
storage: {{model-cache: /mnt/hf}}
scenario: calls
conc: [96, 150]
cluster: node
slo: {{ttft-p95-ms: 500}}
"""


@pytest.fixture
def make_configs(tmp_path: Path) -> Callable[..., Path]:
    """Write a configs/ folder; texts given replace the right ones."""

    def make(
        config: str | bytes = CONFIG, clusters: str = CLUSTERS, scenarios: str = SCENARIOS, datasets: str = DATASETS
    ) -> Path:
        folder = tmp_path / "configs"
        (folder / "serving").mkdir(parents=True, exist_ok=True)
        raw = config if isinstance(config, bytes) else config.encode()
        (folder / "serving" / "x.yaml").write_bytes(raw)
        (folder / "clusters.yaml").write_text(clusters)
        (folder / "scenarios.yaml").write_text(scenarios)
        (folder / "datasets.lock.yaml").write_text(datasets)
        return folder

    return make

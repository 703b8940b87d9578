"""A plan by hand, for tables with expectations by hand."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from serving_bench.contracts import (
    ClusterSpec,
    DatasetSpec,
    LoadSpec,
    ModelSpec,
    Plan,
    ProcessSpec,
    Runtime,
    ScenarioSpec,
    WarmupSpec,
)
from serving_bench.launch.topology import Folders

FRONTEND = ProcessSpec(kind="dynamo.frontend", argv=("python3", "-m", "dynamo.frontend", "--router-mode", "kv"))
MOCKER = ProcessSpec(kind="dynamo.mocker", argv=("python3", "-m", "dynamo.mocker", "--block-size", "16"))


@pytest.fixture
def make_plan() -> Callable[..., Plan]:
    def make(**changes: Any) -> Plan:
        fields: dict[str, Any] = {
            "config": "c",
            "source": "c.yaml",
            "cluster": ClusterSpec(name="here", runs_on=("x",), runtime=Runtime.PROCESS),
            "model": ModelSpec(served_name="demo", id="org/model", revision="a" * 40),
            "framework": "mocker",
            "router_profile": "dynamo",
            "engine": MOCKER,
            "router": FRONTEND,
            "replicas": 2,
            "scenario": ScenarioSpec(
                name="s",
                dataset=DatasetSpec(id="d", format="multi_turn", sha256="0" * 64),
                warmup=WarmupSpec(conversations=4),
                load=LoadSpec(conversations=24),
            ),
            "conc": (4, 8),
            "comparability": "c" * 16,
            "workload": "w" * 16,
        }
        return Plan(**(fields | changes))

    return make


@pytest.fixture
def folders() -> Folders:
    return Folders(
        root=Path("/repo"),
        out=Path("/out"),
        home=Path("/scratch/home"),
        tmp=Path("/scratch/tmp"),
        discovery=Path("/scratch/discovery/start0"),
        hf_home=Path("/home/me/.cache/huggingface"),
        trace=Path("/out/trace/start0.jsonl"),
    )

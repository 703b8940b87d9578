"""A real run as a run directory: one aiperf run at concurrency 4 against two mocker replicas."""

from __future__ import annotations

import gzip
import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from serving_bench.contracts import (
    ClusterSpec,
    DatasetSpec,
    LoadSpec,
    ModelSpec,
    Outcome,
    Plan,
    PointResult,
    ProcessSpec,
    ReplicaInfo,
    RunStatus,
    Runtime,
    ScenarioSpec,
    Slo,
    Stage,
    WarmupSpec,
    comparability_hash,
    workload_hash,
)
from serving_bench.files import write_model

DATA = Path(__file__).parents[2] / "data" / "mocker-c4"
DATASET_SHA = "a" * 64
STARTED_NS = 1_796_066_230_000_000_000
WORKERS = ("6309955104538533776", "3296565612380861811")


def make_plan(conc: tuple[int, ...] = (4,), **changes: Any) -> Plan:
    rooms = hashlib.sha256((DATA / "rooms.csv").read_bytes()).hexdigest()
    dataset = DatasetSpec(id="voice-agent", format="multi_turn", sha256=DATASET_SHA, rooms_sha256=rooms)
    scenario = ScenarioSpec(
        name="voice-agent-demo",
        dataset=dataset,
        warmup=WarmupSpec(conversations=4),
        load=LoadSpec(conversations=56),
    )
    scenario = changes.pop("scenario", scenario)
    cluster = ClusterSpec(name="local", runs_on=("self-hosted",), runtime=Runtime.PROCESS)
    model = ModelSpec(served_name="demo", path="configs/models/demo")
    plan = Plan(
        config="demo-2rep-dyn-mocker-kv",
        description="Two mocker replicas behind the KV router",
        source="configs/serving/demo-2rep-dyn-mocker-kv.yaml",
        cluster=cluster,
        model=model,
        framework="mocker",
        router_profile="dynamo",
        engine=ProcessSpec(kind="dynamo.mocker", argv=("python3", "-m", "dynamo.mocker")),
        router=ProcessSpec(kind="dynamo.frontend", argv=("python3", "-m", "dynamo.frontend")),
        replicas=2,
        scenario=scenario,
        conc=conc,
        slo=Slo(ttft_p95_ms=100.0, error_rate=0.01),
        comparability=comparability_hash(workload_hash(scenario), cluster, model, 0),
        workload=workload_hash(scenario),
    )
    return plan.model_copy(update=changes)


def make_status(**changes: Any) -> RunStatus:
    status = RunStatus(outcome=Outcome.PASSED, stage=Stage.DONE, started_ns=STARTED_NS, updated_ns=STARTED_NS)
    return status.model_copy(update=changes)


def make_result(conc: int = 4, **changes: Any) -> PointResult:
    replicas = tuple(
        ReplicaInfo(index=index, endpoint=f"http://127.0.0.1:{18100 + index}", worker_ids=(worker,))
        for index, worker in enumerate(WORKERS)
    )
    result = PointResult(
        conc=conc,
        outcome=Outcome.PASSED,
        client_argv=("aiperf", "profile"),
        client_exit=0,
        started_ns=STARTED_NS,
        ended_ns=STARTED_NS + 20_000_000_000,
        replicas=replicas,
        router_endpoint="http://127.0.0.1:18000",
    )
    return result.model_copy(update=changes)


def copy_artifacts(folder: Path) -> Path:
    folder.mkdir(parents=True)
    for name in ("profile_export_aiperf.json", "phase_manifest.json", "server_metrics_export.json"):
        shutil.copy(DATA / name, folder)
    (folder / "profile_export.jsonl").write_bytes(gzip.decompress((DATA / "profile_export.jsonl.gz").read_bytes()))
    return folder


class RunFolder(NamedTuple):
    """A run directory that tests may break before they analyze it."""

    path: Path

    @property
    def point(self) -> Path:
        return self.path / "points" / "c4"

    @property
    def records(self) -> Path:
        return self.point / "aiperf" / "profile_export.jsonl"

    def rows(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.records.read_text().splitlines()]

    def write_rows(self, rows: list[dict[str, Any]]) -> None:
        self.records.write_text("".join(json.dumps(row) + "\n" for row in rows))

    def write_plan(self, plan: Plan) -> None:
        write_model(self.path / "plan.json", plan)

    def write_status(self, **changes: Any) -> None:
        write_model(self.path / "status.json", make_status(**changes))

    def write_result(self, **changes: Any) -> None:
        write_model(self.point / "point.json", make_result(**changes))


def build_run(path: Path) -> RunFolder:
    """The sample as launch leaves it."""
    run = RunFolder(path)
    copy_artifacts(run.point / "aiperf")
    for when in ("before", "after"):
        shutil.copytree(DATA / f"metrics-{when}", run.point / f"metrics-{when}")
    (path / "trace").mkdir()
    shutil.copy(DATA / "start0.000000.jsonl.gz", path / "trace")
    shutil.copy(DATA / "rooms.csv", path)
    (path / "dataset.txt").write_text(f"voice-agent sha256:{DATASET_SHA}\n")
    packages = {"ai-dynamo": "1.6.1", "aiperf": "0.13.0"}
    (path / "environment.json").write_text(json.dumps({"bench": {"packages": packages}}))
    run.write_plan(make_plan())
    run.write_status()
    run.write_result()
    return run


@pytest.fixture
def run_folder(tmp_path: Path) -> RunFolder:
    return build_run(tmp_path / "run")


@pytest.fixture
def bare_folder(tmp_path: Path) -> Path:
    return copy_artifacts(tmp_path / "my-aiperf-run")


@pytest.fixture(scope="session")
def build_sample() -> Callable[[Path], RunFolder]:
    return build_run


@pytest.fixture
def plan_of() -> Callable[..., Plan]:
    return make_plan


@pytest.fixture
def sample_result() -> PointResult:
    return make_result()

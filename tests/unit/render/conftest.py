"""Plans made by hand, and a repository with a configs/ folder under a real git."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
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
    Timeouts,
    comparability_hash,
    workload_hash,
)

ROOT = Path(__file__).resolve().parents[3]
DEMO = "demo-2rep-dyn-mocker-kv"

MakePlan = Callable[..., Plan]


def plan_of(
    config: str = "x",
    cluster: str = "node",
    *,
    runs_on: tuple[str, ...] = ("self-hosted", "h200"),
    max_parallel: int | None = None,
    duration_s: float | None = 1200,
    **changes: Any,
) -> Plan:
    """A plan of one TP4 replica, c96 and c150, 1200 s a point; deadlines 1800, 3600 and 60 s."""
    scenario = ScenarioSpec(
        name="calls",
        dataset=DatasetSpec(id="calls", format="multi_turn", sha256="a" * 64),
        load=LoadSpec(duration_s=duration_s, conversations=None if duration_s else 10),
    )
    where = ClusterSpec(name=cluster, runs_on=runs_on, runtime=Runtime.PROCESS, max_parallel=max_parallel)
    model = ModelSpec(served_name="m", id="org/m", revision="c" * 40)
    fields: dict[str, Any] = {
        "config": config,
        "source": f"configs/serving/{config}.yaml",
        "cluster": where,
        "model": model,
        "framework": "vllm",
        "router_profile": "none",
        "engine": ProcessSpec(kind="vllm", argv=("vllm", "serve")),
        "gpus": 4,
        "scenario": scenario,
        "conc": (96, 150),
        "timeouts": Timeouts(),
        "comparability": comparability_hash(workload_hash(scenario), where, model, 4),
        "workload": workload_hash(scenario),
    }
    return Plan(**(fields | changes))


@pytest.fixture
def make_plan() -> MakePlan:
    return plan_of


@dataclass(frozen=True)
class Repository:
    """A work tree with configs of its own; nobody's git configuration reaches it."""

    path: Path

    @property
    def configs(self) -> Path:
        return self.path / "configs"

    def git(self, *args: str) -> str:
        env = {
            "HOME": str(self.path),
            "PATH": "/usr/local/bin:/usr/bin:/bin",
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_AUTHOR_NAME": "a",
            "GIT_AUTHOR_EMAIL": "a@example.org",
            "GIT_COMMITTER_NAME": "a",
            "GIT_COMMITTER_EMAIL": "a@example.org",
        }
        command = ["git", "-c", "init.defaultBranch=main", "-C", str(self.path), *args]
        return subprocess.run(command, check=True, capture_output=True, text=True, env=env).stdout.strip()

    def write(self, name: str, text: str) -> None:
        target = self.configs / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")

    def replace(self, name: str, old: str, new: str) -> None:
        text = (self.configs / name).read_text(encoding="utf-8")
        assert old in text, (name, old)
        self.write(name, text.replace(old, new))

    def commit(self, message: str = "a change") -> str:
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", message)
        return self.git("rev-parse", "HEAD")


CLUSTERS = """\
clusters:
  one: {runs-on: ubuntu-latest, runtime: process, features: [router]}
  two: {runs-on: [self-hosted, big], runtime: process, features: [router], max-parallel: 2}
"""
DATASETS = f"""\
datasets:
  small: {{path: small.jsonl, sha256: {"a" * 64}}}
  large: {{path: large.jsonl, sha256: {"b" * 64}}}
"""
SCENARIOS = """\
scenarios:
  calls: {dataset: small, load: {duration-s: 1200}}
  chats: {dataset: large, load: {duration-s: 600}}
"""


def config_text(scenario: str = "calls", cluster: str = "one", conc: str = "[4, 8]", more: str = "") -> str:
    return (
        "model: {path: models/tiny}\n"
        "serve: python3 -m dynamo.mocker --block-size 16\n"
        "router: {serve: python3 -m dynamo.frontend --router-mode kv}\n"
        f"scenario: {scenario}\nconc: {conc}\ncluster: {cluster}\n{more}"
    )


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    """A branch ``work`` of ``main``, with configs a (calls, one), b (chats, two) and c, which extends a."""
    if shutil.which("git") is None:
        pytest.fail("these tests ask a real git")
    found = Repository(tmp_path / "repo")
    found.path.mkdir()
    found.git("init", "-q")
    found.write("clusters.yaml", CLUSTERS)
    found.write("datasets.lock.yaml", DATASETS)
    found.write("scenarios.yaml", SCENARIOS)
    found.write("serving/a.yaml", config_text())
    found.write("serving/b.yaml", config_text("chats", "two"))
    found.write("serving/c.yaml", "extends: a\nconc: [2]\n")
    found.commit("first")
    found.git("checkout", "-q", "-b", "work")
    return found

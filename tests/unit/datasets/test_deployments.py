"""The committed deployments: what they ask, what they run, and that anyone can get what they need."""

from __future__ import annotations

from pathlib import Path

import pytest

from serving_bench.config.loader import load
from serving_bench.contracts import CacheState, Plan

ROOT = Path(__file__).resolve().parents[3]
PROD = "gemma4-livekit-2tp4-dyn-vllm-prod"


@pytest.fixture(scope="module")
def plans() -> dict[str, Plan]:
    return {plan.config: plan for plan in load(ROOT / "configs").plans}


@pytest.mark.parametrize("path", sorted((ROOT / "configs/serving").glob("*.yaml")), ids=lambda path: path.stem)
def test_each_says_which_question_it_answers(path: Path) -> None:
    first = path.read_text(encoding="utf-8").splitlines()[0]
    assert first.startswith("# Which question it answers: ")
    assert first.endswith("?")


def test_nothing_refers_to_a_dataset_that_nobody_can_fetch(plans: dict[str, Plan]) -> None:
    assert {plan.scenario.dataset.generator for plan in plans.values()} == {"voice-agent"}


def test_the_production_deployment_is_what_runs(plans: dict[str, Plan]) -> None:
    plan = plans[PROD]
    assert plan.engine.argv == (
        "python3", "-m", "dynamo.vllm", "--tensor-parallel-size", "4", "--quantization", "fp8",
        "--max-num-batched-tokens", "8192", "--long-prefill-token-threshold", "2048",
        "--prefix-cache-retention-interval", "4096",
    )  # fmt: skip
    assert plan.router is not None
    assert plan.router.argv == (
        "python3", "-m", "dynamo.frontend", "--router-mode=kv", "--router-prefill-load-scale=16",
        "--router-session-affinity-mode=hard", "--router-session-affinity-ttl-secs=1800",
        "--router-min-initial-workers=2",
    )  # fmt: skip
    assert plan.router.env == {"DYN_PARSER_VERSION": "2"}
    assert (plan.replicas, plan.gpus, plan.conc) == (2, 4, (96, 150))
    assert (plan.cluster.gpu_kind, plan.cluster.gpus_per_node) == ("H200", 8)
    assert (plan.slo.ttft_p95_ms, plan.scenario.load.duration_s) == (500, 1200)
    assert plan.cache is CacheState.WARM


def test_the_affinity_variant_differs_in_one_flag_and_the_concurrency(plans: dict[str, Plan]) -> None:
    prod, variant = plans[PROD], plans["gemma4-livekit-2tp4-dyn-vllm-affinity-soft"]
    assert prod.router is not None
    assert variant.router is not None
    assert set(variant.router.argv) ^ set(prod.router.argv) == {
        "--router-session-affinity-mode=hard",
        "--router-session-affinity-mode=soft",
    }
    assert variant.conc == (96,)
    same = {"engine", "model", "scenario", "replicas", "gpus", "cluster", "comparability", "workload", "slo", "cache"}
    assert variant.model_dump(include=same) == prod.model_dump(include=same)


@pytest.mark.parametrize(
    ("name", "kind", "replicas", "conc"),
    [
        ("gemma4-livekit-1tp4-dyn-sglang", "dynamo.sglang", 1, (48, 75)),
        ("gemma4-livekit-1tp4-vllm", "vllm", 1, (48, 75)),
        ("gemma4-livekit-2tp4-vllm-norouter", "vllm", 2, (96, 150)),
    ],
)
def test_the_others_carry_the_same_load_per_engine(
    plans: dict[str, Plan], name: str, kind: str, replicas: int, conc: tuple[int, ...]
) -> None:
    plan, prod = plans[name], plans[PROD]
    assert (plan.engine.kind, plan.replicas, plan.conc) == (kind, replicas, conc)
    assert [one / plan.replicas for one in plan.conc] == [one / prod.replicas for one in prod.conc]
    assert (plan.model, plan.workload) == (prod.model, prod.workload)
    assert (plan.router is None) == (kind == "vllm")

"""aiperf's command line, against expectations written by hand."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from serving_bench.contracts import LoadSpec, Plan, WarmupSpec
from serving_bench.engines.base import ModelSource
from serving_bench.launch.load import client_argv, client_env, load_flags, warmup_flags
from serving_bench.launch.topology import Folders


def _argv(plan: Plan, model: ModelSource) -> tuple[str, ...]:
    return client_argv(
        plan,
        8,
        url="http://127.0.0.1:20000",
        metrics_urls=["http://127.0.0.1:20001/metrics", "http://127.0.0.1:20002/metrics"],
        model=model,
        conversations=Path("/scratch/d.jsonl"),
        artifacts=Path("/out/points/c8/aiperf"),
    )


def test_two_mocker_replicas_with_a_local_tokenizer(make_plan: Callable[..., Plan]) -> None:
    assert _argv(make_plan(), ModelSource("/models/demo", "demo")) == (
        "aiperf", "profile", "--model", "demo", "--url", "http://127.0.0.1:20000",
        "--endpoint-type", "chat", "--streaming",
        "--tokenizer", "/models/demo", "--use-server-token-count",
        "--input-file", "/scratch/d.jsonl", "--custom-dataset-type", "multi_turn",
        "--dataset-sampling-strategy", "sequential", "--random-seed", "1",
        "--concurrency", "8",
        "--num-warmup-sessions", "4", "--conversation-num", "24",
        "--request-timeout-seconds", "600",
        "--server-metrics", "http://127.0.0.1:20001/metrics", "http://127.0.0.1:20002/metrics",
        "--server-metrics-formats", "json", "jsonl",
        "--session-header", "x-dynamo-session-id", "--no-gpu-telemetry",
        "--artifact-dir", "/out/points/c8/aiperf", "--ui", "none",
    )  # fmt: skip


def test_a_hub_model_with_gpus_without_streaming_and_without_dynamo(make_plan: Callable[..., Plan]) -> None:
    base = make_plan(gpus=4, router_profile="none")
    update = {"streaming": False, "seed": 7, "request_timeout_s": 12.5, "warmup": WarmupSpec(), "sampling": "shuffle"}
    plan = base.model_copy(update={"scenario": base.scenario.model_copy(update=update)})
    assert _argv(plan, ModelSource("org/model", "demo", "a" * 40)) == (
        "aiperf", "profile", "--model", "demo", "--url", "http://127.0.0.1:20000",
        "--endpoint-type", "chat",
        "--tokenizer", "org/model", "--tokenizer-revision", "a" * 40, "--use-server-token-count",
        "--input-file", "/scratch/d.jsonl", "--custom-dataset-type", "multi_turn",
        "--dataset-sampling-strategy", "shuffle", "--random-seed", "7",
        "--concurrency", "8", "--conversation-num", "24",
        "--request-timeout-seconds", "12.5",
        "--server-metrics", "http://127.0.0.1:20001/metrics", "http://127.0.0.1:20002/metrics",
        "--server-metrics-formats", "json", "jsonl",
        "--artifact-dir", "/out/points/c8/aiperf", "--ui", "none",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("warmup", "expected"),
    [
        (WarmupSpec(), []),
        (WarmupSpec(conversations=4), ["--num-warmup-sessions", "4"]),
        (WarmupSpec(requests=1_234_567), ["--warmup-request-count", "1234567"]),
        (WarmupSpec(duration_s=30), ["--warmup-duration", "30"]),
        (WarmupSpec(duration_s=0.5), ["--warmup-duration", "0.5"]),
    ],
)
def test_warmup(warmup: WarmupSpec, expected: list[str]) -> None:
    assert warmup_flags(warmup) == expected


@pytest.mark.parametrize(
    ("load", "expected"),
    [
        (LoadSpec(conversations=24), ["--conversation-num", "24"]),
        (LoadSpec(requests=1_000_001), ["--request-count", "1000001"]),
        (LoadSpec(duration_s=1200), ["--benchmark-duration", "1200"]),
        (LoadSpec(requests=10, duration_s=1.5), ["--request-count", "10", "--benchmark-duration", "1.5"]),
    ],
)
def test_load(load: LoadSpec, expected: list[str]) -> None:
    assert load_flags(load) == expected


@pytest.mark.parametrize(("local", "offline"), [(True, None), (False, "1")])
def test_offline_mode_is_kept_from_aiperf_only_for_a_local_tokenizer(
    folders: Folders, tmp_path: Path, local: bool, offline: str | None
) -> None:
    model = ModelSource(str(tmp_path) if local else "org/model", "demo")
    env = client_env({"PATH": "/bin", "HF_HUB_OFFLINE": "1", "HOME": "/home/me"}, folders, model)
    assert env.pop("HF_HUB_OFFLINE", None) == offline
    assert env == {
        "PATH": "/bin",
        "HOME": "/scratch/home",
        "TMPDIR": "/scratch/tmp",
        "HF_HOME": "/home/me/.cache/huggingface",
        "PYTHONUNBUFFERED": "1",
    }

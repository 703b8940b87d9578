"""aiperf's command line and environment for one point. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from serving_bench.contracts import LoadSpec, Plan, WarmupSpec
from serving_bench.engines.base import ModelSource
from serving_bench.launch.topology import Folders

_SESSION_HEADERS = {"dynamo": "x-dynamo-session-id"}
"""Router profile → header in which the router's session affinity looks for the session."""


def client_argv(
    plan: Plan,
    conc: int,
    *,
    url: str,
    metrics_urls: Sequence[str],
    model: ModelSource,
    conversations: Path,
    artifacts: Path,
) -> tuple[str, ...]:
    """aiperf's argv. The router's own metrics are scraped by aiperf without being named."""
    scenario = plan.scenario
    argv = [
        "aiperf", "profile", "--model", model.served_name, "--url", url,
        "--endpoint-type", scenario.endpoint_type,
        *(["--streaming"] if scenario.streaming else []),
        "--tokenizer", model.location,
        *(["--tokenizer-revision", model.revision] if model.revision else []),
        "--use-server-token-count",
        "--input-file", str(conversations), "--custom-dataset-type", scenario.dataset.format,
        "--dataset-sampling-strategy", scenario.sampling,
        "--random-seed", str(scenario.seed),
        "--concurrency", str(conc),
        *warmup_flags(scenario.warmup), *load_flags(scenario.load),
        "--request-timeout-seconds", f"{scenario.request_timeout_s:g}",
        "--server-metrics", *metrics_urls, "--server-metrics-formats", "json", "jsonl",
    ]  # fmt: skip
    header = _SESSION_HEADERS.get(plan.router_profile)
    argv += ["--session-header", header] if header else []
    argv += [] if plan.gpus else ["--no-gpu-telemetry"]
    return (*argv, "--artifact-dir", str(artifacts), "--ui", "none")


def warmup_flags(warmup: WarmupSpec) -> list[str]:
    """Length of the warm-up phase; no flag means that there is none."""
    return _flags(
        ("--num-warmup-sessions", warmup.conversations),
        ("--warmup-request-count", warmup.requests),
        ("--warmup-duration", warmup.duration_s),
    )


def load_flags(load: LoadSpec) -> list[str]:
    """Length of the profiling phase."""
    return _flags(
        ("--conversation-num", load.conversations),
        ("--request-count", load.requests),
        ("--benchmark-duration", load.duration_s),
    )


def _flags(*pairs: tuple[str, float | None]) -> list[str]:
    return [word for flag, value in pairs if value is not None for word in (flag, f"{value:.15g}")]


def client_env(inherited: Mapping[str, str], folders: Folders, model: ModelSource) -> dict[str, str]:
    """aiperf's environment: its caches and sockets in the run's scratch folder."""
    env = {**inherited, "HOME": str(folders.home), "TMPDIR": str(folders.tmp), "HF_HOME": str(folders.hf_home)}
    if Path(model.location).is_dir():
        # aiperf refuses a tokenizer from a folder when this is set; it needs no network for one.
        env.pop("HF_HUB_OFFLINE", None)
    return env | {"PYTHONUNBUFFERED": "1"}

"""``agg_bmk.json``: a flat row per point, as dashboards ingest it.

Read as they are from aiperf's own summary; analyze computes from the records.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from serving_bench.contracts import Plan, PointResult

_METRICS = {
    "ttft": "time_to_first_token",
    "itl": "inter_token_latency",
    "e2el": "request_latency",
}
_STATISTICS = {"mean": ("avg", 1), "p50": ("p50", 2), "p90": ("p90", 10), "p95": ("p95", 20), "p99": ("p99", 100)}
"""Row suffix → aiperf's name and the least number of samples: with fewer a percentile would be the maximum."""
_RATES = {
    "request_throughput": "request_throughput",
    "output_throughput": "output_token_throughput",
    "total_token_throughput": "total_token_throughput",
}


def row(plan: Plan, point: PointResult, summary: Mapping[str, Any], phases: Mapping[str, Any]) -> dict[str, Any]:
    """The row of one point; what aiperf did not give is null.

    ``summary`` is profile_export_aiperf.json, ``phases`` phase_manifest.json.
    """
    profiling = _profiling(phases)
    return {
        "config": plan.config,
        "cluster": plan.cluster.name,
        "model": plan.model.served_name,
        "framework": plan.framework,
        "router": plan.router_profile,
        "scenario": plan.scenario.name,
        "workload": plan.workload,
        "comparability": plan.comparability,
        "conc": point.conc,
        "repeat": point.repeat,
        "tp": plan.gpus,
        "replicas": plan.replicas,
        "outcome": point.outcome.value,
        "num_requests_total": profiling.get("total_request_count"),
        "num_requests_completed": profiling.get("successful_request_count"),
        "num_requests_failed": profiling.get("error_request_count"),
        "duration_s": _value(summary, "benchmark_duration", "avg", 0),
        **{name: _value(summary, metric, "avg", 0) for name, metric in _RATES.items()},
        **{
            f"{name}_{suffix}_ms": _value(summary, metric, statistic, least)
            for name, metric in _METRICS.items()
            for suffix, (statistic, least) in _STATISTICS.items()
        },
    }


def _profiling(phases: Mapping[str, Any]) -> Mapping[str, Any]:
    listed = phases.get("phases")
    kinds = [phase for phase in listed if isinstance(phase, dict)] if isinstance(listed, list) else []
    found = [phase for phase in kinds if phase.get("phase_kind") == "profiling"]
    return found[0] if len(found) == 1 else {}


def _value(summary: Mapping[str, Any], metric: str, statistic: str, least: int) -> float | None:
    data = summary.get(metric)
    count = data.get("count", least) if isinstance(data, dict) else None
    if not isinstance(data, dict) or not isinstance(count, int | float) or count < least:
        return None
    value = data.get(statistic)
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else None

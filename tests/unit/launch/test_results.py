"""The flat row of a point, from a real aiperf summary and from broken ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from serving_bench.contracts import Outcome, Plan, PointResult
from serving_bench.launch.points import PointId, exits_by_index, point_ids
from serving_bench.launch.results import row

POINT = PointResult(conc=4, repeat=1, outcome=Outcome.PASSED, client_argv=(), started_ns=1)
PHASES = {
    "phases": [
        {"phase_kind": "warmup", "total_request_count": 9, "successful_request_count": 9, "error_request_count": 0},
        {
            "phase_kind": "profiling",
            "total_request_count": 40,
            "successful_request_count": 38,
            "error_request_count": 2,
        },
    ]
}


def _metric(count: int) -> dict[str, Any]:
    return {"unit": "ms", "count": count, "avg": 1.5, "p50": 2.5, "p90": 3.5, "p95": 4.5, "p99": 5.5}


def test_a_row_has_the_plans_names_and_aiperfs_numbers(make_plan: Callable[..., Plan]) -> None:
    summary = {
        "time_to_first_token": _metric(38),
        "request_latency": _metric(100),
        "benchmark_duration": {"unit": "sec", "avg": 12},
        "request_throughput": {"unit": "requests/sec", "avg": 3.25},
    }
    found = row(make_plan(gpus=2), POINT, summary, PHASES)
    assert found["config"] == "c"
    assert (found["conc"], found["repeat"], found["tp"], found["replicas"]) == (4, 1, 2, 2)
    assert (found["num_requests_total"], found["num_requests_completed"], found["num_requests_failed"]) == (40, 38, 2)
    assert (found["duration_s"], found["request_throughput"], found["output_throughput"]) == (12.0, 3.25, None)
    ttft = [found[f"ttft_{name}_ms"] for name in ("mean", "p50", "p90", "p95", "p99")]
    assert ttft == [1.5, 2.5, 3.5, 4.5, None], "the 99th of 38 would be the maximum"
    assert found["e2el_p99_ms"] == 5.5
    assert found["itl_p50_ms"] is None


@pytest.mark.parametrize(("count", "known"), [(1, 0), (2, 1), (9, 1), (10, 2), (19, 2), (20, 3), (99, 3), (100, 4)])
def test_a_percentile_needs_enough_samples(make_plan: Callable[..., Plan], count: int, known: int) -> None:
    found = row(make_plan(), POINT, {"time_to_first_token": _metric(count)}, {})
    values = [found[f"ttft_{name}_ms"] for name in ("p50", "p90", "p95", "p99")]
    assert [value is not None for value in values] == [index < known for index in range(4)]


@pytest.mark.parametrize("broken", [{}, {"time_to_first_token": None}, {"time_to_first_token": {"avg": "x"}}])
def test_what_is_not_there_is_null(make_plan: Callable[..., Plan], broken: dict[str, Any]) -> None:
    found = row(make_plan(), POINT, broken, {"phases": []})
    assert found["ttft_mean_ms"] is None
    assert found["num_requests_total"] is None


def test_points_run_in_order_and_their_names_carry_repeats_only_where_there_are_any(
    make_plan: Callable[..., Plan],
) -> None:
    assert [point.name for point in point_ids(make_plan())] == ["c4", "c8"]
    assert [point.name for point in point_ids(make_plan(repeats=2))] == ["c4-r0", "c8-r0", "c4-r1", "c8-r1"]
    assert PointId(150, 0, 1).name == "c150"


def test_exits_are_told_by_replica_index() -> None:
    assert exits_by_index({"replica.1": -9, "router": 0}) == {"1": -9, "router": 0}

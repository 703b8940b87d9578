"""The cache ledger where engines have counters, and where a witness cannot speak."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from serving_bench.analyze import inputs, report
from serving_bench.report_contract import Cache, Point

RunFolder = Any

VLLM = """\
# TYPE vllm:prefix_cache_queries_total counter
vllm:prefix_cache_queries_total{{engine="0"}} {queries}
# TYPE vllm:prefix_cache_hits_total counter
vllm:prefix_cache_hits_total{{engine="0"}} {hits}
# TYPE vllm:prompt_tokens_total counter
vllm:prompt_tokens_total{{engine="0"}} {queries}
"""
WARM_CACHED, WARM_PROMPT = 33_232, 38_449


def analyze(path: Path) -> Point:
    (point,) = report.build([inputs.load(path)]).runs[0].points
    return point


def add_engine_counters(run: RunFolder, shares: tuple[tuple[int, int], ...]) -> None:
    """Counters as a vLLM replica has them: (hits, queries) per replica over warm-up and profiling."""
    for index, (hits, queries) in enumerate(shares):
        for when, grown in (("before", (1_000, 5_000)), ("after", (1_000 + hits, 5_000 + queries))):
            path = run.point / f"metrics-{when}" / f"replica.{index}.prom"
            path.write_text(path.read_text() + VLLM.format(hits=grown[0], queries=grown[1]))


def test_engine_counters_less_the_warmup_agree_with_the_responses(run_folder: RunFolder) -> None:
    """Together the replicas served 409,856 cached of 447,786 prompt tokens, warm-up included."""
    add_engine_counters(run_folder, ((250_000, 270_000), (159_856, 177_786)))
    cache = analyze(run_folder.path).cache
    assert cache.engine_hit_rate == pytest.approx(376_624 / 409_337)
    assert cache.engine_cached_share == pytest.approx(376_624 / 409_337)
    engine = cache.witnesses[0]
    assert (engine.name, engine.cached_tokens, engine.prompt_tokens) == ("engine", 376_624, 409_337)
    assert "warm-up's share is taken off" in engine.note
    assert cache.spread == 0


def test_a_counter_of_one_replica_alone_is_no_answer(run_folder: RunFolder) -> None:
    add_engine_counters(run_folder, ((250_000, 270_000),))
    point = analyze(run_folder.path)
    assert point.cache.engine_hit_rate is None
    assert point.notes["cache.engine_hit_rate"]


def strip_usage(run: RunFolder, phase: str) -> None:
    rows = run.rows()
    row = next(row for row in rows if row["metadata"]["benchmark_phase"] == phase)
    del row["metrics"]["usage_prompt_cache_read_tokens"]
    run.write_rows(rows)


def test_a_warmup_response_without_usage_leaves_the_counters_without_a_window(run_folder: RunFolder) -> None:
    add_engine_counters(run_folder, ((250_000, 270_000), (159_856, 177_786)))
    strip_usage(run_folder, "warmup")
    point = analyze(run_folder.path)
    assert (point.cache.engine_cached_share, point.cache.frontend_cached_share) == (None, None)
    assert point.cache.responses_cached_share == pytest.approx(376_624 / 409_337)
    for path in ("cache.engine_cached_share", "cache.frontend_cached_share"):
        assert point.notes[path] == "in the warm-up 1 of 24 responses carry no count of cached or prompt tokens"


def test_a_failed_warmup_request_too(run_folder: RunFolder) -> None:
    rows = run_folder.rows()
    rows[0] |= {"error": {"code": 500}, "metrics": {}}
    run_folder.write_rows(rows)
    assert "1 of 24 warm-up requests did not complete" in analyze(run_folder.path).notes["cache.frontend_cached_share"]


def test_a_response_without_usage_is_not_zero(run_folder: RunFolder) -> None:
    strip_usage(run_folder, "profiling")
    point = analyze(run_folder.path)
    assert point.cache.responses_cached_share is None
    assert point.notes["cache.responses_cached_share"].startswith("1 of 263 responses")
    assert point.oddities == {"record without cached tokens": 1}


def test_without_a_trace_the_causes_are_not_known(run_folder: RunFolder) -> None:
    (run_folder.path / "trace" / "start0.000000.jsonl.gz").unlink()
    point = analyze(run_folder.path)
    assert point.cache.misses == Cache().misses
    assert (point.cache.trace_cached_share, point.cache.trace_reusable_share) == (None, None)
    assert {
        "cache.misses",
        "cache.trace_reusable_share",
        "cache.trace_cached_share",
        "sessions_moved",
    } <= point.notes.keys()
    assert point.anatomy_ms.all.n == 0
    assert "JOIN_INCOMPLETE" in point.validity.unchecked


def vllm_server_metrics(endpoints: dict[str, dict[str, float]]) -> str:
    names = {name for counters in endpoints.values() for name in counters}
    metrics = {
        name: {
            "series": [
                {
                    "endpoint_url": f"{url}/metrics",
                    "labels": {"dynamo_endpoint": "generate"},
                    "stats": {"total": counters[name]},
                }
                for url, counters in endpoints.items()
            ]
        }
        for name in names
    }
    return json.dumps({"metrics": metrics})


def test_a_bare_directory_of_two_vllm_replicas(bare_folder: Path) -> None:
    """Counters over the profiling phase as aiperf exports them, per endpoint."""
    endpoints = {
        "http://127.0.0.1:8101": {
            "dynamo_component_requests": 44.0,
            "vllm:prefix_cache_hits": 14_528.0,
            "vllm:prefix_cache_queries": 24_558.0,
            "vllm:prompt_tokens": 24_558.0,
        },
        "http://127.0.0.1:8102": {
            "dynamo_component_requests": 52.0,
            "vllm:prefix_cache_hits": 17_056.0,
            "vllm:prefix_cache_queries": 29_036.0,
            "vllm:prompt_tokens": 29_036.0,
        },
    }
    (bare_folder / "server_metrics_export.json").write_text(vllm_server_metrics(endpoints))
    point = analyze(bare_folder)
    assert [(one.endpoint, one.requests, one.prompt_tokens, one.cached_tokens) for one in point.replicas] == [
        ("http://127.0.0.1:8101", 44, 24_558, 14_528),
        ("http://127.0.0.1:8102", 52, 29_036, 17_056),
    ]
    assert point.cache.engine_hit_rate == pytest.approx(31_584 / 53_594)
    assert "not exact" in point.notes["replicas"]

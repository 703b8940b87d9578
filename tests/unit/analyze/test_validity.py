"""Each way in which a run can have measured something else, and its code."""

from __future__ import annotations

import gzip
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from serving_bench.analyze import inputs, report
from serving_bench.analyze.validity import CHECKS
from serving_bench.contracts import CacheState, LoadSpec, Outcome, Plan
from serving_bench.report_contract import Point, Verdict

RunFolder = Any
PlanOf = Callable[..., Plan]
ALWAYS = "WARMUP_REPLAYED"
"""The sample is a real run in which aiperf played a warm-up conversation again."""


def analyze(run: RunFolder) -> Point:
    (point,) = report.build([inputs.load(run.path)]).runs[0].points
    return point


def codes(point: Point) -> dict[str, str]:
    return {reason.code: reason.level.value for reason in point.validity.reasons if reason.code != ALWAYS}


def edit_json(path: Path, **changes: Any) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def change_rows(run: RunFolder, change: Callable[[int, dict[str, Any]], None]) -> None:
    rows = run.rows()
    profiling = [row for row in rows if row["metadata"]["benchmark_phase"] == "profiling"]
    for number, row in enumerate(profiling):
        change(number, row)
    run.write_rows(rows)


def fail(number: int, row: dict[str, Any]) -> None:
    row["error"] = {"code": 503, "type": "ServiceUnavailable"}
    row["metrics"] = {}


def test_the_sample_passes_every_other_check(run_folder: RunFolder) -> None:
    point = analyze(run_folder)
    assert codes(point) == {}
    assert set(point.validity.checked) | set(point.validity.unchecked) == {check.code for check in CHECKS}
    assert set(point.validity.unchecked) == {"PROMPTS_REPEATED", "IMBALANCE"}


def test_no_completed_request(run_folder: RunFolder) -> None:
    change_rows(run_folder, fail)
    point = analyze(run_folder)
    assert {"NO_COMPLETED_REQUEST", "ERROR_RATE"} <= codes(point).keys()
    assert point.validity.verdict is Verdict.INVALID
    assert point.errors == {"503 ServiceUnavailable": 263}
    assert (point.ttft_ms.all.n, point.ttft_ms.all.p95) == (0, None)
    assert [check.met for check in point.slo] == [None, None]


@pytest.mark.parametrize(("failures", "invalid"), [(2, False), (3, True)])
def test_error_rate_above_the_scenarios_limit(run_folder: RunFolder, failures: int, invalid: bool) -> None:
    """The limit is 1 % of 263 requests."""
    change_rows(run_folder, lambda number, row: fail(number, row) if number < failures else None)
    point = analyze(run_folder)
    assert point.requests.errors == failures
    assert ("ERROR_RATE" in codes(point)) is invalid


def test_records_missing(run_folder: RunFolder) -> None:
    run_folder.records.unlink()
    assert codes(analyze(run_folder)).get("RECORDS_MISSING") == "INVALID"


def test_records_empty(run_folder: RunFolder) -> None:
    run_folder.records.write_bytes(b"")
    assert {"RECORDS_MISSING", "RECORDS_TRUNCATED", "NO_COMPLETED_REQUEST"} <= codes(analyze(run_folder)).keys()


def test_records_cut_in_a_line(run_folder: RunFolder) -> None:
    run_folder.records.write_bytes(run_folder.records.read_bytes()[:-100])
    found = codes(analyze(run_folder))
    assert (found["RECORDS_DAMAGED"], found["RECORDS_TRUNCATED"]) == ("INVALID", "INVALID")


def test_records_cut_between_lines(run_folder: RunFolder) -> None:
    run_folder.write_rows(run_folder.rows()[:-3])
    point = analyze(run_folder)
    assert codes(point)["RECORDS_TRUNCATED"] == "INVALID"
    assert "260 profiling records, but phase_manifest.json counts 263" in [
        one.message for one in point.validity.reasons
    ]


def test_records_are_compared_with_the_summary_where_there_is_no_manifest(run_folder: RunFolder) -> None:
    (run_folder.point / "aiperf" / "phase_manifest.json").unlink()
    assert "RECORDS_TRUNCATED" not in codes(analyze(run_folder))
    run_folder.write_rows(run_folder.rows()[:-1])
    assert "RECORDS_TRUNCATED" in codes(analyze(run_folder))


def test_binary_records(run_folder: RunFolder) -> None:
    run_folder.records.write_bytes(bytes(range(256)) * 40)
    assert {"RECORDS_DAMAGED", "RECORDS_MISSING"} <= codes(analyze(run_folder)).keys()


@pytest.mark.parametrize("change", [{"was_cancelled": True}, {"is_complete": False}])
def test_phase_incomplete_by_the_summary(run_folder: RunFolder, change: dict[str, bool]) -> None:
    edit_json(run_folder.point / "aiperf" / "profile_export_aiperf.json", **change)
    assert codes(analyze(run_folder)) == {"PHASE_INCOMPLETE": "INVALID"}


def test_phase_shorter_than_planned(run_folder: RunFolder, plan_of: PlanOf) -> None:
    scenario = plan_of().scenario
    run_folder.write_plan(plan_of(scenario=scenario.model_copy(update={"load": LoadSpec(conversations=57)})))
    assert codes(analyze(run_folder)) == {"PHASE_INCOMPLETE": "INVALID"}


def test_replica_died(run_folder: RunFolder) -> None:
    run_folder.write_result(replica_exits={"1": -9})
    point = analyze(run_folder)
    assert codes(point) == {"REPLICA_DIED": "INVALID"}
    assert "replica 1 ended with status -9" in point.validity.reasons[0].message


def test_router_died(run_folder: RunFolder) -> None:
    run_folder.write_result(replica_exits={"router": 1})
    assert codes(analyze(run_folder)) == {"ROUTER_DIED": "INVALID"}


def test_replica_starved(run_folder: RunFolder) -> None:
    """Every request's worker becomes that of replica 0."""
    path = run_folder.path / "trace" / "start0.000000.jsonl.gz"
    text = gzip.decompress(path.read_bytes()).decode().replace("3296565612380861811", "6309955104538533776")
    path.write_bytes(gzip.compress(text.encode()))
    point = analyze(run_folder)
    assert codes(point)["REPLICA_STARVED"] == "INVALID"
    assert [one.requests for one in point.replicas] == [263, 0]


def test_a_worker_that_no_replica_is_known_for_leaves_starvation_unchecked(
    run_folder: RunFolder, sample_result: Any
) -> None:
    known = [
        one.model_copy(update={"worker_ids": one.worker_ids if not one.index else ("1",)})
        for one in sample_result.replicas
    ]
    run_folder.write_result(replicas=tuple(known))
    shutil.rmtree(run_folder.point / "metrics-after")
    point = analyze(run_folder)
    assert "97 requests went to workers" in point.validity.unchecked["REPLICA_STARVED"]


def test_worker_ids_come_from_the_metrics_where_point_json_has_none(run_folder: RunFolder, sample_result: Any) -> None:
    run_folder.write_result(replicas=tuple(one.model_copy(update={"worker_ids": ()}) for one in sample_result.replicas))
    assert [one.requests for one in analyze(run_folder).replicas] == [166, 97]


def test_fewer_replicas_than_planned(run_folder: RunFolder, plan_of: PlanOf) -> None:
    run_folder.write_plan(plan_of(replicas=3))
    assert codes(analyze(run_folder)) == {"REPLICAS_MISSING": "INVALID"}


def test_counters_went_backwards(run_folder: RunFolder) -> None:
    path = run_folder.point / "metrics-after" / "replica.1.prom"
    path.write_text(path.read_text().replace("} 111", "} 0"))
    before = run_folder.point / "metrics-before" / "replica.1.prom"
    line = 'dynamo_component_requests_total{dynamo_component="backend",dynamo_endpoint="generate",'
    line += 'dynamo_namespace="dynamo",worker_id="2dbfc0f560bab573"} 5\n'
    before.write_text("# TYPE dynamo_component_requests_total counter\n" + line)
    point = analyze(run_folder)
    assert codes(point)["COUNTERS_BACKWARDS"] == "INVALID"


def test_the_plan_was_edited(run_folder: RunFolder, plan_of: PlanOf) -> None:
    run_folder.write_plan(plan_of(workload="0123456789abcdef"))
    assert codes(analyze(run_folder)) == {"WORKLOAD_MISMATCH": "INVALID"}


def test_another_dataset_was_used(run_folder: RunFolder) -> None:
    (run_folder.path / "dataset.txt").write_text(f"voice-agent sha256:{'b' * 64}\n")
    assert codes(analyze(run_folder)) == {"WORKLOAD_MISMATCH": "INVALID"}


def test_another_rooms_plan_was_used(run_folder: RunFolder) -> None:
    path = run_folder.path / "rooms.csv"
    path.write_text(path.read_text() + "one-more,one-more,0\n")
    assert codes(analyze(run_folder)) == {"WORKLOAD_MISMATCH": "INVALID"}


@pytest.mark.parametrize(("step", "invalid"), [(0.2, False), (-0.2, False), (5.0, True), (-5.0, True)])
def test_the_clock_stepped(run_folder: RunFolder, step: float, invalid: bool) -> None:
    run_folder.write_result(clock_step_s=step)
    assert codes(analyze(run_folder)) == ({"CLOCK_STEPPED": "INVALID"} if invalid else {})


def test_warmup_still_running_in_the_window(run_folder: RunFolder) -> None:
    rows = run_folder.rows()
    warm = next(row for row in rows if row["metadata"]["benchmark_phase"] == "warmup")
    warm["metadata"]["request_end_ns"] += 60_000_000_000
    run_folder.write_rows(rows)
    assert codes(analyze(run_folder)) == {"WARMUP_IN_WINDOW": "INVALID"}


def test_warmup_missing(run_folder: RunFolder) -> None:
    run_folder.write_rows([row for row in run_folder.rows() if row["metadata"]["benchmark_phase"] == "profiling"])
    point = analyze(run_folder)
    assert codes(point)["WARMUP_MISSING"] == "DEGRADED"
    assert point.requests.warmup == 0


def test_a_warm_plan_may_replay_its_warmup(run_folder: RunFolder, plan_of: PlanOf) -> None:
    run_folder.write_plan(plan_of(cache=CacheState.WARM))
    assert analyze(run_folder).validity.verdict is Verdict.VALID


def test_cache_not_fresh(run_folder: RunFolder) -> None:
    """The first request that a replica got already finds tokens."""
    rows = run_folder.rows()
    for row in rows:
        if row["metadata"]["benchmark_phase"] == "warmup":
            row["metrics"]["usage_prompt_cache_read_tokens"]["value"] = 640
    run_folder.write_rows(rows)
    assert codes(analyze(run_folder))["CACHE_NOT_FRESH"] == "DEGRADED"


def test_prompts_repeated(run_folder: RunFolder, plan_of: PlanOf) -> None:
    scenario = plan_of().scenario.model_copy(update={"unique_prompts": True})
    run_folder.write_plan(plan_of(scenario=scenario))
    assert codes(analyze(run_folder)) == {}
    path = run_folder.path / "trace" / "start0.000000.jsonl.gz"
    lines = [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]
    first, second = (line["event"]["request"] for line in lines[100:102])
    second["replay"], second["input_tokens"] = first["replay"], first["input_tokens"]
    path.write_bytes(gzip.compress("\n".join(json.dumps(line) for line in lines).encode()))
    assert codes(analyze(run_folder))["PROMPTS_REPEATED"] == "DEGRADED"


def test_opening_wave(run_folder: RunFolder) -> None:
    """14 samples lie above p95 of 263; the first 8 requests are made the slowest."""
    profiling = [row for row in run_folder.rows() if row["metadata"]["benchmark_phase"] == "profiling"]
    wave = sorted(row["metadata"]["request_start_ns"] for row in profiling)[:8]

    def slow(number: int, row: dict[str, Any]) -> None:
        if row["metadata"]["request_start_ns"] in wave:
            row["metrics"]["time_to_first_token"]["value"] = 9_000.0

    change_rows(run_folder, slow)
    assert "OPENING_WAVE" not in codes(analyze(run_folder)), "at conc 4 the wave is 4 requests"
    (run_folder.path / "points" / "c4").rename(run_folder.path / "points" / "c8")
    loaded = report.build([inputs.load(run_folder.path)]).runs[0].points
    assert codes(next(point for point in loaded if point.conc == 8))["OPENING_WAVE"] == "DEGRADED"


def test_client_behind(run_folder: RunFolder) -> None:
    def late(number: int, row: dict[str, Any]) -> None:
        row["metadata"]["credit_issued_ns"] = row["metadata"]["request_start_ns"] - 100_000_000

    change_rows(run_folder, late)
    assert codes(analyze(run_folder)) == {"CLIENT_BEHIND": "DEGRADED"}


def test_few_samples(run_folder: RunFolder) -> None:
    rows = run_folder.rows()
    warm, profiling = rows[:24], rows[24:]
    run_folder.write_rows([*warm, *profiling[:150]])
    found = codes(analyze(run_folder))
    assert found["FEW_SAMPLES"] == "DEGRADED"


@pytest.mark.parametrize(("limit", "uneven"), [(1.3, False), (1.2, True)])
def test_imbalance(run_folder: RunFolder, plan_of: PlanOf, limit: float, uneven: bool) -> None:
    """166 and 97 requests: the busiest has 1.26 times the mean."""
    scenario = plan_of().scenario.model_copy(update={"max_imbalance": limit})
    run_folder.write_plan(plan_of(scenario=scenario))
    assert codes(analyze(run_folder)) == ({"IMBALANCE": "DEGRADED"} if uneven else {})


def test_contradiction(run_folder: RunFolder) -> None:
    """The frontend's sum says 8,187 tokens (2 points) and a few more than the responses."""
    path = run_folder.point / "metrics-after" / "router.prom"
    path.write_text(path.read_text().replace(" 409856", " 401000"))
    point = analyze(run_folder)
    assert codes(point) == {"CONTRADICTION": "DEGRADED"}
    assert point.cache.spread == pytest.approx(8_856 / 409_337)


def test_join_incomplete(run_folder: RunFolder) -> None:
    path = run_folder.path / "trace" / "start0.000000.jsonl.gz"
    lines = gzip.decompress(path.read_bytes()).splitlines()
    path.write_bytes(gzip.compress(b"\n".join(lines[:-4])))
    point = analyze(run_folder)
    assert codes(point) == {"JOIN_INCOMPLETE": "DEGRADED"}
    assert point.joined_share == pytest.approx(259 / 263)


def test_summary_disagrees(run_folder: RunFolder) -> None:
    path = run_folder.point / "aiperf" / "profile_export_aiperf.json"
    summary = json.loads(path.read_text())
    summary["time_to_first_token"]["p95"] *= 1.02
    path.write_text(json.dumps(summary))
    assert codes(analyze(run_folder)) == {"SUMMARY_DISAGREES": "DEGRADED"}


def test_point_failed(run_folder: RunFolder) -> None:
    run_folder.write_result(outcome=Outcome.FAILED, code="SB-CLIENT-HUNG", message="aiperf made no progress")
    point = analyze(run_folder)
    assert codes(point) == {"POINT_FAILED": "INVALID"}
    assert "aiperf made no progress [SB-CLIENT-HUNG]" in point.validity.reasons[0].message


@pytest.mark.parametrize("content", [None, b"", b"{", b"\x00\xff", b"[]"])
def test_point_json_missing_or_broken(run_folder: RunFolder, content: bytes | None) -> None:
    path = run_folder.point / "point.json"
    path.unlink()
    if content is not None:
        path.write_bytes(content)
    assert codes(analyze(run_folder))["POINT_FAILED"] == "INVALID"


@pytest.mark.parametrize("content", [b"", b"{}", b"\x00\xff"])
def test_plan_json_broken(run_folder: RunFolder, content: bytes) -> None:
    (run_folder.path / "plan.json").write_bytes(content)
    assert codes(analyze(run_folder))["PLAN_UNREADABLE"] == "INVALID"


def test_the_gravest_reason_decides_and_stands_first(run_folder: RunFolder) -> None:
    run_folder.write_result(replica_exits={"0": 1})
    point = analyze(run_folder)
    assert [reason.level for reason in point.validity.reasons] == [Verdict.INVALID, Verdict.DEGRADED]
    assert point.validity.verdict is Verdict.INVALID


def test_codes_are_unique_and_upper_case() -> None:
    found = [check.code for check in CHECKS]
    assert len(set(found)) == len(found)
    assert all(code == code.upper() and code.replace("_", "").isalpha() for code in found)

"""The report of a real run against an independent computation: csv, json and gzip, nothing of the package."""

from __future__ import annotations

import csv
import gzip
import json
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest

from serving_bench.analyze import inputs, report
from serving_bench.report_contract import Point, Verdict

DATA = Path(__file__).parents[2] / "data" / "mocker-c4"
REPLICA_OF = {6309955104538533776: 0, 3296565612380861811: 1}
Row = dict[str, Any]


def plain_percentile(values: list[float], q: float) -> float:
    ordered = sorted(values)
    position = (len(ordered) - 1) * q
    below = int(position)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (position - below)


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    with gzip.open(DATA / "profile_export.jsonl.gz", "rt") as source:
        return [json.loads(line) for line in source]


@pytest.fixture(scope="module")
def profiling(rows: list[Row]) -> list[Row]:
    return [row for row in rows if row["metadata"]["benchmark_phase"] == "profiling"]


@pytest.fixture(scope="module")
def summary() -> Row:
    loaded: Row = json.loads((DATA / "profile_export_aiperf.json").read_text())
    return loaded


@pytest.fixture(scope="module")
def traced() -> dict[str, Row]:
    with gzip.open(DATA / "start0.000000.jsonl.gz", "rt") as source:
        requests = [json.loads(line)["event"]["request"] for line in source]
    return {request["x_request_id"]: request for request in requests}


@pytest.fixture(scope="module")
def point(tmp_path_factory: pytest.TempPathFactory, build_sample: Any) -> Point:
    run = build_sample(tmp_path_factory.mktemp("numbers") / "run")
    (found,) = report.build([inputs.load(run.path)]).runs[0].points
    return found


def metric(row: Row, name: str) -> float:
    return float(row["metrics"][name]["value"])


def test_all_turn_percentiles_equal_aiperfs_own_summary(point: Point, summary: Row) -> None:
    theirs = summary["time_to_first_token"]
    ours = point.ttft_ms.all
    assert ours.n == summary["request_count"]["avg"] == 263
    for name in ("p50", "p90", "p95", "p99"):
        assert getattr(ours, name) == pytest.approx(theirs[name], rel=1e-9)
    assert (ours.mean, ours.max) == pytest.approx((theirs["avg"], theirs["max"]))
    for ours_too, name in ((point.itl_ms, "inter_token_latency"), (point.e2e_ms, "request_latency")):
        assert ours_too.p95 == pytest.approx(summary[name]["p95"], rel=1e-9)


def test_first_and_later_turns_by_the_rooms_plan(point: Point, profiling: list[Row]) -> None:
    with (DATA / "rooms.csv").open(newline="") as source:
        starts = {row["conversation_id"]: int(row["room_turn"]) for row in csv.DictReader(source)}
    classes: dict[str, list[float]] = defaultdict(list)
    for row in profiling:
        turn = starts[row["metadata"]["conversation_id"]] + row["metadata"]["turn_index"]
        classes["first" if turn == 0 else "later"].append(metric(row, "time_to_first_token"))
    assert (point.ttft_ms.first.n, point.ttft_ms.later.n) == (len(classes["first"]), len(classes["later"])) == (48, 215)
    assert point.ttft_ms.first.n + point.ttft_ms.later.n == point.ttft_ms.all.n
    for name, values in classes.items():
        ours = getattr(point.ttft_ms, name)
        assert ours.p50 == pytest.approx(plain_percentile(values, 0.50))
        assert ours.p95 == pytest.approx(plain_percentile(values, 0.95))
        low, high = ours.p95_ci
        assert low <= ours.p95 <= high
    assert any(starts[row["metadata"]["conversation_id"]] > 0 for row in profiling), "the sample has hand-overs"


def test_warmup_is_counted_and_in_no_number(point: Point, rows: list[Row], profiling: list[Row]) -> None:
    assert point.requests.warmup == len(rows) - len(profiling) == 24
    assert point.requests.total == len(profiling) == 263
    assert (point.requests.errors, point.requests.cancelled) == (0, 0)
    begin = min(row["metadata"]["request_start_ns"] for row in profiling)
    end = max(row["metadata"]["request_end_ns"] for row in profiling)
    assert point.requests.per_s == pytest.approx(len(profiling) / ((end - begin) / 1e9))


def test_witnesses_agree_and_add_up(point: Point, rows: list[Row], profiling: list[Row], summary: Row) -> None:
    cached = sum(metric(row, "usage_prompt_cache_read_tokens") for row in profiling)
    prompt = sum(metric(row, "usage_prompt_tokens") for row in profiling)
    everything = sum(metric(row, "usage_prompt_cache_read_tokens") for row in rows)
    assert everything == 409_856, "what the frontend's own sum grew by"
    assert cached == summary["total_usage_prompt_cache_read_tokens"]["avg"] == 376_624
    by_name = {one.name: one for one in point.cache.witnesses}
    for name in ("frontend", "responses", "trace"):
        assert (by_name[name].cached_tokens, by_name[name].prompt_tokens) == (cached, prompt)
    assert by_name["engine"].share is None
    assert "no prefix-cache counters" in by_name["engine"].note
    assert point.cache.responses_cached_share == pytest.approx(cached / prompt)
    assert point.cache.spread == 0


def test_requests_and_tokens_per_replica(point: Point, profiling: list[Row], traced: dict[str, Row]) -> None:
    requests: Counter[int] = Counter()
    tokens: Counter[int] = Counter()
    cached: Counter[int] = Counter()
    workers: dict[str, set[int]] = defaultdict(set)
    for row in profiling:
        seen = traced[row["metadata"]["x_request_id"]]
        replica = REPLICA_OF[seen["worker"]["prefill_worker_id"]]
        requests[replica] += 1
        tokens[replica] += seen["input_tokens"]
        cached[replica] += int(metric(row, "usage_prompt_cache_read_tokens"))
        workers[row["metadata"]["x_correlation_id"]].add(replica)
    for one in point.replicas:
        assert (one.requests, one.prompt_tokens, one.cached_tokens) == (
            requests[one.index],
            tokens[one.index],
            cached[one.index],
        )
    assert sum(requests.values()) == 263
    assert point.imbalance == pytest.approx(max(requests.values()) / (263 / 2))
    assert point.sessions_moved == sum(len(found) > 1 for found in workers.values())
    assert point.joined_share == 1.0


def test_anatomy_adds_up_to_ttft(point: Point, profiling: list[Row], traced: dict[str, Row]) -> None:
    client, queue, prefill = [], [], []
    for row in profiling:
        seen = traced[row["metadata"]["x_request_id"]]
        client.append(metric(row, "time_to_first_token") - seen["ttft_ms"])
        queue.append(seen["prefill_wait_time_ms"])
        prefill.append(seen["prefill_time_ms"])
    ours = point.anatomy_ms.all
    assert ours.n == 263
    for part, values in ((ours.client, client), (ours.queue, queue), (ours.prefill, prefill)):
        assert part.p50 == pytest.approx(plain_percentile(values, 0.50))
        assert part.p95 == pytest.approx(plain_percentile(values, 0.95))
    means = [part.mean or 0.0 for part in (ours.client, ours.queue, ours.prefill, ours.rest)]
    assert sum(means) == pytest.approx(point.ttft_ms.all.mean)
    assert ours.negative == sum(value < 0 for value in client)


def test_misses_by_cause_against_a_plain_replay_of_the_trace(
    point: Point, rows: list[Row], profiling: list[Row], traced: dict[str, Row]
) -> None:
    """Blocks in plain sets, a request seeing only what had its first token when its own prefill began."""
    said = {row["metadata"]["x_request_id"]: int(metric(row, "usage_prompt_cache_read_tokens")) for row in rows}
    wanted = {row["metadata"]["x_request_id"] for row in profiling}
    totals: Counter[str] = Counter()
    for name in wanted:
        own = traced[name]
        begin = own["request_received_ms"] + own["prefill_wait_time_ms"]
        before = [one for one in traced.values() if one["request_received_ms"] + one["ttft_ms"] <= begin]
        here = {
            block
            for one in before
            if one["worker"] == own["worker"]
            for block in one["replay"]["input_sequence_hashes"][: one["input_tokens"] // 16]
        }
        anywhere = {
            block for one in before for block in one["replay"]["input_sequence_hashes"][: one["input_tokens"] // 16]
        }
        totals["cached"] += said[name]
        totals["partial"] += own["input_tokens"] % 16
        blocks = own["replay"]["input_sequence_hashes"][: own["input_tokens"] // 16]
        for place, block in enumerate(blocks):
            if 16 * place < said[name]:
                continue
            cause = "evicted" if block in here else "elsewhere" if block in anywhere else "new"
            full = 16 * (place + 1) == own["input_tokens"]
            totals["partial" if full and cause != "new" else cause] += 16
    prompt = sum(traced[name]["input_tokens"] for name in wanted)
    assert sum(totals.values()) == prompt
    shares = point.cache.by_turn.all
    for cause in ("cached", "new", "elsewhere", "evicted", "partial"):
        assert getattr(shares, cause) == pytest.approx(totals[cause] / prompt)
    assert sum(
        getattr(shares, cause) or 0 for cause in ("cached", "new", "elsewhere", "evicted", "partial")
    ) == pytest.approx(1)
    first, later = point.cache.by_turn.first, point.cache.by_turn.later
    assert (first.prompt_tokens or 0) + (later.prompt_tokens or 0) == shares.prompt_tokens == prompt


def test_the_sample_itself_shows_a_replayed_warmup(point: Point, rows: list[Row]) -> None:
    phases: dict[str, set[str]] = defaultdict(set)
    for row in rows:
        phases[row["metadata"]["conversation_id"]].add(row["metadata"]["benchmark_phase"])
    twice = {name for name, seen in phases.items() if len(seen) > 1}
    again = sum(
        row["metadata"]["conversation_id"] in twice and row["metadata"]["benchmark_phase"] == "profiling"
        for row in rows
    )
    assert again == 5
    assert point.validity.verdict is Verdict.DEGRADED
    assert [(reason.code, reason.message.split()[0]) for reason in point.validity.reasons] == [("WARMUP_REPLAYED", "5")]


def test_objectives(point: Point) -> None:
    assert [(one.name, one.met) for one in point.slo] == [("ttft-p95-ms", True), ("error-rate", True)]
    assert point.slo[0].measured == point.ttft_ms.all.p95

"""The demo as README has it, and its report against plain arithmetic over what aiperf and Dynamo wrote.

Nothing of the package is used to get the expected values: only csv, gzip, json
and the definition of a percentile.
"""

from __future__ import annotations

import csv
import gzip
import json
import os
import subprocess
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.e2e

ROOT = Path(__file__).resolve().parents[2]
POINTS = ("c4", "c8")


@dataclass(frozen=True)
class Demo:
    """The demo's output folder and what it printed."""

    out: Path
    printed: str

    @property
    def report(self) -> dict[str, Any]:
        return dict(json.loads((self.out / "report" / "report.json").read_text()))

    def point(self, name: str) -> dict[str, Any]:
        (run,) = self.report["runs"]
        return dict(next(point for point in run["points"] if f"c{point['conc']}" == name))

    def aiperf(self, name: str) -> Path:
        return self.out / "run" / "points" / name / "aiperf"

    def records(self, name: str) -> list[dict[str, Any]]:
        text = (self.aiperf(name) / "profile_export.jsonl").read_text()
        return [json.loads(line) for line in text.splitlines()]

    def profiling(self, name: str) -> list[dict[str, Any]]:
        return [record for record in self.records(name) if record["metadata"]["benchmark_phase"] == "profiling"]

    def summary(self, name: str) -> dict[str, Any]:
        return dict(json.loads((self.aiperf(name) / "profile_export_aiperf.json").read_text()))

    def trace(self) -> dict[str, dict[str, Any]]:
        """Request id → what Dynamo's request trace says of it."""
        found = {}
        for path in (self.out / "run" / "trace").glob("*.jsonl.gz"):
            for line in gzip.decompress(path.read_bytes()).splitlines():
                request = json.loads(line)["event"]["request"]
                found[request.get("x_request_id")] = request
        return found

    def room_turns(self) -> dict[str, int]:
        with (self.out / "run" / "rooms.csv").open(newline="") as rows:
            return {row["conversation_id"]: int(row["room_turn"]) for row in csv.DictReader(rows)}


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Demo:
    out = tmp_path_factory.mktemp("demo") / "out"
    env = {name: value for name, value in os.environ.items() if not name.startswith("GITHUB_")}
    command = [str(ROOT / "scripts" / "demo"), "--out", str(out)]
    done = subprocess.run(command, capture_output=True, text=True, cwd="/", env=env, check=False, timeout=280)
    assert done.returncode == 0, done.stdout + done.stderr
    return Demo(out, done.stdout)


def percentile(values: list[float], q: float) -> float:
    """Linear interpolation between the two samples around rank q·(n - 1)."""
    ordered = sorted(values)
    rank = q * (len(ordered) - 1)
    low = int(rank)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (rank - low)


def ttft(record: dict[str, Any]) -> float:
    return float(record["metrics"]["time_to_first_token"]["value"])


def test_the_table_and_the_place_of_the_report_are_printed(demo: Demo) -> None:
    assert f"{demo.out}/report/report.html" in demo.printed
    for name in POINTS:
        assert any(line.startswith(f"{name} ") for line in demo.printed.splitlines())


@pytest.mark.parametrize("name", POINTS)
def test_both_replicas_worked_and_nothing_failed(demo: Demo, name: str) -> None:
    point = demo.point(name)
    assert point["requests"]["errors"] == 0
    assert [replica["index"] for replica in point["replicas"]] == [0, 1]
    workers = Counter(
        demo.trace()[record["metadata"]["x_request_id"]]["worker"]["decode_worker_id"]
        for record in demo.profiling(name)
    )
    assert sorted(workers.values()) == sorted(replica["requests"] for replica in point["replicas"])
    assert min(workers.values()) > 0
    assert sum(workers.values()) == point["requests"]["total"] == len(demo.profiling(name))


@pytest.mark.parametrize("name", POINTS)
def test_prompt_tokens_per_replica_are_those_of_the_responses(demo: Demo, name: str) -> None:
    trace = demo.trace()
    tokens: Counter[int] = Counter()
    for record in demo.profiling(name):
        worker = trace[record["metadata"]["x_request_id"]]["worker"]["decode_worker_id"]
        tokens[worker] += record["metrics"]["usage_prompt_tokens"]["value"]
    assert sorted(tokens.values()) == sorted(replica["prompt_tokens"] for replica in demo.point(name)["replicas"])


@pytest.mark.parametrize("name", POINTS)
def test_every_call_was_played_once_and_the_warm_up_is_excluded(demo: Demo, name: str) -> None:
    played = {(r["metadata"]["conversation_id"], r["metadata"]["turn_index"]) for r in demo.profiling(name)}
    assert len(played) == len(demo.profiling(name))
    assert {room for room, _ in played} == {room for room in demo.room_turns() if room.startswith("room-")}
    warmup = len(demo.records(name)) - len(played)
    assert warmup > 0
    assert demo.point(name)["requests"]["warmup"] == warmup
    assert demo.point(name)["ttft_ms"]["all"]["n"] == len(played)


@pytest.mark.parametrize("name", POINTS)
def test_all_turn_percentiles_are_those_of_aiperf(demo: Demo, name: str) -> None:
    theirs = demo.summary(name)["time_to_first_token"]
    ours = demo.point(name)["ttft_ms"]["all"]
    for here, there in (
        ("mean", "avg"),
        ("p50", "p50"),
        ("p90", "p90"),
        ("p95", "p95"),
        ("p99", "p99"),
        ("max", "max"),
    ):
        assert ours[here] == pytest.approx(theirs[there], rel=1e-6), here


@pytest.mark.parametrize("name", POINTS)
def test_first_and_later_turns_add_up_and_are_right(demo: Demo, name: str) -> None:
    starts = demo.room_turns()
    split: dict[bool, list[float]] = {True: [], False: []}
    for record in demo.profiling(name):
        meta = record["metadata"]
        split[starts[meta["conversation_id"]] + meta["turn_index"] == 0].append(ttft(record))
    shown = demo.point(name)["ttft_ms"]
    assert shown["first"]["n"] == 48, "a handed-over call has one first turn, not two"
    assert shown["first"]["n"] + shown["later"]["n"] == shown["all"]["n"]
    for turns, values in (("first", split[True]), ("later", split[False])):
        assert shown[turns]["n"] == len(values)
        assert shown[turns]["mean"] == pytest.approx(sum(values) / len(values))
        for q in (50, 90, 95):
            assert shown[turns][f"p{q}"] == pytest.approx(percentile(values, q / 100)), (turns, q)
        low, high = shown[turns]["p95_ci"]
        assert low <= shown[turns]["p95"] <= high


@pytest.mark.parametrize("name", POINTS)
def test_the_witnesses_of_the_cache_agree_within_2_points(demo: Demo, name: str) -> None:
    cache = demo.point(name)["cache"]
    records = demo.profiling(name)
    cached = sum(record["metrics"]["usage_prompt_cache_read_tokens"]["value"] for record in records)
    prompt = sum(record["metrics"]["usage_prompt_tokens"]["value"] for record in records)
    assert cache["responses_cached_share"] == pytest.approx(cached / prompt)
    traced = [demo.trace()[record["metadata"]["x_request_id"]] for record in records]
    shares = [
        cached / prompt,
        sum(request["cached_tokens"] for request in traced) / sum(request["input_tokens"] for request in traced),
        cache["frontend_cached_share"],
    ]
    assert cache["trace_cached_share"] == pytest.approx(shares[1])
    assert max(shares) - min(shares) <= 0.02
    assert cache["engine_hit_rate"] is None, "the mocker has no such counters, and null is not 0"


@pytest.mark.parametrize("name", POINTS)
def test_the_point_can_be_believed(demo: Demo, name: str) -> None:
    validity = demo.point(name)["validity"]
    assert [reason["code"] for reason in validity["reasons"] if reason["level"] == "INVALID"] == []


def test_every_view_says_what_the_report_says(demo: Demo) -> None:
    """Every view is there, and says what report.json says."""
    folder = demo.out / "report"
    for name in POINTS:
        value = demo.point(name)["ttft_ms"]["first"]["p95"]
        for view in ("summary.md", "comment.md", "report.html"):
            assert f"{value:.1f}" in (folder / view).read_text(), (name, view)

"""Reading aiperf's records: what is tolerated is counted, what is kept is right."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from serving_bench.analyze import records
from serving_bench.analyze.records import read_records


def row(number: int = 0, **changes: Any) -> dict[str, Any]:
    metadata = {
        "x_request_id": f"request-{number}",
        "x_correlation_id": f"replay-{number}",
        "conversation_id": f"conversation-{number}",
        "turn_index": 0,
        "request_start_ns": 1_000 + number,
        "request_end_ns": 2_000 + number,
        "benchmark_phase": "profiling",
        "was_cancelled": False,
        "a_field_of_a_later_version": {"x": 1},
    }
    metrics = {
        "time_to_first_token": {"value": 12.5, "unit": "ms"},
        "request_latency": {"value": 20.0, "unit": "ms"},
        "usage_prompt_tokens": {"value": 100, "unit": "tokens"},
        "usage_prompt_cache_read_tokens": {"value": 64, "unit": "tokens"},
        "inter_chunk_latency": {"value": [1.0, 2.0], "unit": "ms"},
    }
    metadata |= changes.pop("metadata", {})
    metrics |= changes.pop("metrics", {})
    return {"metadata": metadata, "metrics": metrics, **changes}


def write(path: Path, *rows: dict[str, Any], tail: bytes = b"") -> Path:
    path.write_bytes(b"".join(json.dumps(one).encode() + b"\n" for one in rows) + tail)
    return path


def test_keeps_the_fields_it_names_and_ignores_the_rest(tmp_path: Path) -> None:
    found = read_records(write(tmp_path / "r.jsonl", row(1))).profiling
    assert (found.n, found.ttft_ms[0], found.latency_ms[0]) == (1, 12.5, 20.0)
    assert (found.prompt_tokens[0], found.cached_tokens[0]) == (100, 64)
    assert (found.request_id, found.correlation, found.conversation) == (
        ["request-1"],
        ["replay-1"],
        ["conversation-1"],
    )
    assert (found.start_ns[0], found.end_ns[0], found.credit_ns[0]) == (1_001, 2_001, -1)
    assert found.completed.tolist() == [True]


def test_a_missing_file_is_told_apart_from_an_empty_one(tmp_path: Path) -> None:
    assert not read_records(tmp_path / "none.jsonl").present
    empty = read_records(write(tmp_path / "r.jsonl"))
    assert (empty.present, empty.profiling.n, empty.oddities) == (True, 0, {})


def test_warmup_and_any_other_phase_are_kept_apart(tmp_path: Path) -> None:
    phases = [
        row(n, metadata={"benchmark_phase": phase}) for n, phase in enumerate(["warmup", "profiling", "cooldown"])
    ]
    found = read_records(write(tmp_path / "r.jsonl", *phases))
    assert found.profiling.request_id == ["request-1"]
    assert found.warmup.request_id == ["request-0", "request-2"]


def test_a_cut_last_line_is_counted_and_the_others_stay(tmp_path: Path) -> None:
    found = read_records(write(tmp_path / "r.jsonl", row(1), row(2), tail=json.dumps(row(3)).encode()[:150]))
    assert found.profiling.n == 2
    assert (found.oddities, found.damaged) == ({"cut line": 1}, 1)


@pytest.mark.parametrize(
    "line",
    [
        b"\x00\xff\xfe\x01",
        b"not json",
        b"[1, 2]",
        b'{"metadata": {}}',
        b'{"metadata": null}',
        gzip.compress(b"x" * 100),
        b'"\xff"',
    ],
)
def test_unreadable_lines_are_counted(tmp_path: Path, line: bytes) -> None:
    found = read_records(write(tmp_path / "r.jsonl", row(1), tail=line + b"\n"))
    assert found.profiling.n == 1
    assert found.damaged >= 1


def test_nan_is_no_json_number(tmp_path: Path) -> None:
    text = json.dumps(row(1, metrics={"time_to_first_token": {"value": float("nan"), "unit": "ms"}}))
    assert read_records(write(tmp_path / "r.jsonl", tail=text.encode() + b"\n")).oddities == {"unreadable line": 1}


def test_an_overlong_line_is_passed_over_without_reading_it_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(records, "LINE_LIMIT", 2_000)
    found = read_records(write(tmp_path / "r.jsonl", row(1), row(2, padding="x" * 5_000), row(3)))
    assert found.profiling.request_id == ["request-1", "request-3"]
    assert found.oddities == {"overlong line": 1}


def test_failed_and_cancelled_requests_are_on_record_but_not_completed(tmp_path: Path) -> None:
    rows = [
        row(1, error={"code": 503, "type": "ServiceUnavailable", "message": "no worker"}, metrics={}),
        row(2, error={"code": 503, "type": "ServiceUnavailable", "message": "again"}, metrics={}),
        row(3, error="timeout"),
        row(4, metadata={"was_cancelled": True}),
        row(5),
    ]
    found = read_records(write(tmp_path / "r.jsonl", *rows))
    assert found.profiling.completed.tolist() == [False, False, False, False, True]
    assert found.profiling.failed.sum() == 3
    assert found.errors == {"503 ServiceUnavailable": 2, "timeout": 1}


def test_missing_metrics_are_nan_and_counted(tmp_path: Path) -> None:
    found = read_records(write(tmp_path / "r.jsonl", row(1, metrics={"time_to_first_token": None}), row(2)))
    assert np.isnan(found.profiling.ttft_ms).tolist() == [True, False]
    assert found.oddities == {"record without TTFT": 1}


@pytest.mark.parametrize(("unit", "expected"), [("ms", 5.0), ("s", 5_000.0), ("us", 0.005), ("ns", 5e-6)])
def test_units_become_milliseconds(tmp_path: Path, unit: str, expected: float) -> None:
    found = read_records(write(tmp_path / "r.jsonl", row(metrics={"time_to_first_token": {"value": 5, "unit": unit}})))
    assert found.profiling.ttft_ms[0] == pytest.approx(expected)

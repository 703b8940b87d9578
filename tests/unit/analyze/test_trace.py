"""Reading the request trace."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

from serving_bench.analyze.trace import read_trace, trace_files


def event(name: str, **request: Any) -> bytes:
    body = {
        "x_request_id": name,
        "input_tokens": 10,
        "cached_tokens": 4,
        "request_received_ms": 1796066237787,
        "prefill_wait_time_ms": 1.5,
        "prefill_time_ms": 2.5,
        "ttft_ms": 4.0,
        "worker": {"prefill_worker_id": 2**63 + 5, "decode_worker_id": 7},
        "replay": {"trace_block_size": 4, "input_sequence_hashes": [2**64 - 1, 3, 5]},
    }
    outer = {"event": {"event_type": "request_end", "event_time_unix_ms": 1796066237821, "request": body | request}}
    return json.dumps(outer).encode() + b"\n"


def test_reads_ids_and_hashes_beyond_the_signed_range(tmp_path: Path) -> None:
    (tmp_path / "start0.000000.jsonl.gz").write_bytes(gzip.compress(event("one")))
    (one,) = read_trace(trace_files(tmp_path)).requests
    assert (one.request_id, one.worker, one.hashes.tolist()) == ("one", 2**63 + 5, [2**64 - 1, 3, 5])
    assert (one.queue_ms, one.prefill_ms, one.ttft_ms, one.block_size) == (1.5, 2.5, 4.0, 4)


def test_files_of_one_start_belong_together_in_order(tmp_path: Path) -> None:
    for name, ids in {"start1.000000": "d", "start0.000001": "c", "start0.000000": "ab"}.items():
        (tmp_path / f"{name}.jsonl.gz").write_bytes(gzip.compress(b"".join(event(one) for one in ids)))
    trace = read_trace(trace_files(tmp_path))
    assert [(one.request_id, one.start) for one in trace.requests] == [("a", 0), ("b", 0), ("c", 0), ("d", 1)]
    assert trace.starts == ("start0", "start1")


def test_a_cut_gzip_gives_what_came_before(tmp_path: Path) -> None:
    whole = gzip.compress(b"".join(event(f"request-{n}", note="x" * (n % 97)) for n in range(500)))
    (tmp_path / "start0.000000.jsonl.gz").write_bytes(whole[: len(whole) // 2])
    trace = read_trace(trace_files(tmp_path))
    assert 0 < len(trace.requests) < 500
    assert trace.oddities is not None
    assert trace.oddities["trace file cut"] == 1


def test_broken_lines_and_other_events_are_passed_over(tmp_path: Path) -> None:
    lines = [
        b"garbage\n",
        b'{"event": {"event_type": "request_start", "request": {"input_tokens": 3}}}\n',
        event("fine"),
        b"\n",
    ]
    (tmp_path / "start0.000000.jsonl").write_bytes(b"".join(lines))
    trace = read_trace(trace_files(tmp_path))
    assert [one.request_id for one in trace.requests] == ["fine"]
    assert trace.oddities == {"unreadable trace line": 1}


def test_a_file_that_is_no_gzip_is_counted(tmp_path: Path) -> None:
    (tmp_path / "start0.000000.jsonl.gz").write_bytes(b"\x00\x01\x02")
    trace = read_trace(trace_files(tmp_path))
    assert (list(trace.requests), trace.oddities) == ([], {"trace file cut": 1})


def test_the_decode_worker_stands_in_where_no_prefill_worker_is_named(tmp_path: Path) -> None:
    (tmp_path / "start0.000000.jsonl.gz").write_bytes(
        gzip.compress(event("one", worker={"decode_worker_id": 7}, replay=None))
    )
    (one,) = read_trace(trace_files(tmp_path)).requests
    assert (one.worker, one.block_size, len(one.hashes)) == (7, 0, 0)

"""The ways in which aiperf can end, told apart by what it left."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from serving_bench.launch.client import has_completed, judge

DONE = {"metadata": {"benchmark_phase": "profiling"}, "metrics": {}, "error": None}
WARM = {"metadata": {"benchmark_phase": "warmup"}, "metrics": {}}
FAILED = {"metadata": {"benchmark_phase": "profiling"}, "error": {"code": 503, "message": "no worker"}}


@pytest.mark.parametrize(
    ("status", "records", "summary", "expected"),
    [
        (0, [WARM, DONE], True, None),
        (0, [WARM, FAILED, DONE], True, None),
        (1, None, False, ("SB-CLIENT-EXIT", "aiperf exited with status 1, without any record")),
        (-9, None, False, ("SB-CLIENT-EXIT", "aiperf was killed by SIGKILL, without any record")),
        (-64, None, False, ("SB-CLIENT-EXIT", "aiperf was killed by SIGRTMAX, without any record")),
        (-99, None, False, ("SB-CLIENT-EXIT", "aiperf was killed by signal 99, without any record")),
        (0, None, False, ("SB-CLIENT-NO-EXPORT", "aiperf exited with status 0, wrote no profile_export.jsonl")),
        (1, [DONE], False, ("SB-CLIENT-EXIT", "aiperf exited with status 1, with a part of the records")),
        (
            1,
            [WARM, FAILED],
            False,
            ("SB-CLIENT-NO-RECORDS", "aiperf exited with status 1, no request of the profiling"),
        ),
        (0, [WARM, FAILED], True, ("SB-CLIENT-NO-RECORDS", "aiperf exited with status 0, no request of the profiling")),
        (0, [], True, ("SB-CLIENT-NO-RECORDS", "aiperf exited with status 0, no request of the profiling")),
        (
            0,
            [DONE],
            False,
            ("SB-CLIENT-NO-SUMMARY", "aiperf exited with status 0, wrote no profile_export_aiperf.json"),
        ),
    ],
)
def test_judge(
    tmp_path: Path, status: int, records: list[object] | None, summary: bool, expected: tuple[str, str] | None
) -> None:
    log = tmp_path / "client.log"
    log.write_text("the last words\n")
    if records is not None:
        (tmp_path / "profile_export.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    if summary:
        (tmp_path / "profile_export_aiperf.json").write_text("{}")
    problem = judge(status, tmp_path, log)
    if expected is None:
        assert problem is None
        return
    assert problem is not None
    assert problem.code == expected[0]
    assert problem.message.startswith(expected[1])
    assert problem.evidence[-1] == "the last words"
    if records and FAILED in records:
        assert problem.evidence[0] == 'the first error: {"code": 503, "message": "no worker"}'


def test_a_record_that_was_cut_off_is_none(tmp_path: Path) -> None:
    (tmp_path / "r").write_text(json.dumps(DONE)[:-5])
    assert has_completed(tmp_path / "r") == (False, None)


def test_looking_for_a_completed_request_stops_at_the_first(tmp_path: Path) -> None:
    (tmp_path / "r").write_bytes(json.dumps(DONE).encode() + b"\n\xff\xfe not even text\n")
    assert has_completed(tmp_path / "r") == (True, None)

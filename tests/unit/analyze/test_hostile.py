"""Directories that were cut, mixed up or made up: a coded reason or error, and no number without a word."""

from __future__ import annotations

import gzip
import io
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from serving_bench.analyze import inputs, report
from serving_bench.analyze.step import AnalyzeOptions
from serving_bench.analyze.step import run as analyze_step
from serving_bench.cli import run as command
from serving_bench.contracts import workload_hash
from serving_bench.files import sha256
from serving_bench.report_contract import Point, Run

RunFolder = Any
Edit = Callable[[dict[str, Any]], None]
TRACE = "start0.000000.jsonl.gz"


def told(run: RunFolder) -> Run:
    return report.build([inputs.load(run.path)]).runs[0]


def point_of(run: RunFolder) -> Point:
    return told(run).points[0]


def reason(point: Point, code: str) -> str:
    return next(one.message for one in point.validity.reasons if one.code == code)


def edit_record(run: RunFolder, edit: Edit, count: int | None = 1) -> None:
    rows = run.rows()
    profiling = [row for row in rows if row["metadata"]["benchmark_phase"] == "profiling"]
    for row in profiling[:count]:
        edit(row)
    run.write_rows(rows)


def edit_trace(run: RunFolder, edit: Callable[[list[dict[str, Any]]], list[dict[str, Any]]]) -> None:
    path = run.path / "trace" / TRACE
    lines = [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]
    path.write_bytes(gzip.compress("\n".join(json.dumps(line) for line in edit(lines)).encode()))


def set_metric(name: str, value: float, unit: str = "ms") -> Edit:
    return lambda row: row["metrics"].update({name: {"value": value, "unit": unit}})


def set_metadata(**fields: Any) -> Edit:
    return lambda row: row["metadata"].update(fields)


@pytest.mark.parametrize(
    "edit",
    [
        set_metric("time_to_first_token", -1.0),
        set_metric("time_to_first_token", 1e308),
        set_metric("request_latency", 1e308, "s"),
        set_metadata(request_start_ns=10**30),
        set_metadata(request_start_ns=-1),
        set_metadata(request_end_ns=0),
        set_metadata(credit_issued_ns=2**70),
        set_metadata(turn_index=-1),
        set_metadata(turn_index=2**63 - 1),
    ],
)
def test_a_record_that_cannot_be_is_damage(run_folder: RunFolder, edit: Edit) -> None:
    edit_record(run_folder, edit)
    assert "1 impossible line" in reason(point_of(run_folder), "RECORDS_DAMAGED")


def test_a_record_that_is_there_twice_is_damage(run_folder: RunFolder) -> None:
    rows = run_folder.rows()
    run_folder.write_rows([*rows[:-1], rows[-2]])
    assert "1 repeated line" in reason(point_of(run_folder), "RECORDS_DAMAGED")


def test_more_cached_than_prompt_tokens_are_not_believed(run_folder: RunFolder) -> None:
    edit_record(run_folder, set_metric("usage_prompt_cache_read_tokens", 1e9, "tokens"))
    cache = point_of(run_folder).cache
    assert cache.responses_cached_share is None
    assert "1 of 263 responses carry no count" in cache.witnesses[2].note


def test_completed_requests_without_ttft_are_counted_out_loud(run_folder: RunFolder) -> None:
    edit_record(run_folder, lambda row: row["metrics"].pop("time_to_first_token"), count=None)
    assert reason(point_of(run_folder), "TTFT_MISSING") == "263 of 263 completed requests have no TTFT"


@pytest.mark.parametrize(
    "text",
    [
        "conversation_id,room,room_turn\na," + "b" * 200_000 + ",0\n",
        "conversation_id,room,room_turn\na,b," + "9" * 30 + "\n",
        "conversation_id,room,room_turn\na,b," + "9" * 6000 + "\n",
        "\udcff",
    ],
)
def test_a_broken_rooms_plan_degrades_the_turns(run_folder: RunFolder, plan_of: Callable[..., Any], text: str) -> None:
    path = run_folder.path / "rooms.csv"
    path.write_bytes(text.encode(errors="surrogateescape"))
    scenario = plan_of().scenario
    dataset = scenario.dataset.model_copy(update={"rooms_sha256": sha256(path.read_bytes())})
    scenario = scenario.model_copy(update={"dataset": dataset})
    run_folder.write_plan(plan_of(scenario=scenario, workload=workload_hash(scenario)))
    assert reason(point_of(run_folder), "ROOMS_UNKNOWN").startswith("rooms.csv: ")


def test_a_missing_rooms_plan_degrades_the_turns(run_folder: RunFolder) -> None:
    (run_folder.path / "rooms.csv").unlink()
    assert reason(point_of(run_folder), "ROOMS_UNKNOWN").startswith("rooms.csv is missing")


def test_a_rooms_plan_of_other_conversations_degrades_the_turns(run_folder: RunFolder) -> None:
    (run_folder.path / "rooms.csv").write_text("conversation_id,room,room_turn\nother,room,0\n")
    assert "263 of 263 requests" in reason(point_of(run_folder), "ROOMS_UNKNOWN")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("input_tokens", -5),
        ("input_tokens", 10**40),
        ("cached_tokens", -5),
        ("cached_tokens", 10**400),
        ("ttft_ms", 1e300),
        ("replay", {"trace_block_size": 16, "input_sequence_hashes": [-1]}),
        ("replay", {"trace_block_size": 16, "input_sequence_hashes": [2**70] * 300}),
        ("replay", {"trace_block_size": -16, "input_sequence_hashes": []}),
    ],
)
def test_a_trace_line_that_cannot_be_is_left_out_and_counted(run_folder: RunFolder, field: str, value: Any) -> None:
    def edit(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
        ended = [line for line in lines if line["event"]["event_type"] == "request_end"]
        ended[-1]["event"]["request"][field] = value
        return lines

    edit_trace(run_folder, edit)
    assert point_of(run_folder).oddities["unreadable trace line"] == 1


def test_a_trace_that_holds_requests_twice_is_told(run_folder: RunFolder) -> None:
    edit_trace(run_folder, lambda lines: [*lines, *lines])
    assert reason(point_of(run_folder), "JOIN_INCOMPLETE") == "263 requests are in the request trace more than once"


def test_a_trace_that_is_a_folder_or_one_endless_line(run_folder: RunFolder) -> None:
    (run_folder.path / "trace" / "x.jsonl").mkdir()
    (run_folder.path / "trace" / "start0.000001.jsonl").write_bytes(b"x" * 17 * 1024 * 1024)
    oddities = point_of(run_folder).oddities
    assert (oddities["trace file that cannot be read"], oddities["overlong trace line"]) == (1, 1)


@pytest.mark.parametrize("value", ["NaN", "+Inf", "-Inf", "-5"])
def test_counters_that_are_no_counts_give_no_witness(run_folder: RunFolder, value: str) -> None:
    path = run_folder.point / "metrics-after" / "router.prom"
    lines = [
        line if line.startswith("#") or not line else f"{line.rpartition(' ')[0]} {value}"
        for line in path.read_text().splitlines()
    ]
    path.write_text("\n".join(lines) + "\n")
    cache = point_of(run_folder).cache
    assert cache.frontend_cached_share is None
    assert cache.witnesses[1].note


def test_a_scrape_that_is_a_folder_is_named(run_folder: RunFolder) -> None:
    path = run_folder.point / "metrics-after" / "router.prom"
    path.unlink()
    path.mkdir()
    assert any("router.prom: cannot be read" in name for name in point_of(run_folder).oddities)


def test_a_run_without_any_count_of_its_requests_is_no_pass(run_folder: RunFolder) -> None:
    for name in ("phase_manifest.json", "profile_export_aiperf.json"):
        (run_folder.point / "aiperf" / name).unlink()
    point = point_of(run_folder)
    assert reason(point, "RECORDS_TRUNCATED").startswith("neither aiperf's manifest nor its summary")
    assert "nothing says that the phase was completed" in reason(point, "PHASE_INCOMPLETE")


def test_two_folders_of_one_point_are_both_shown_and_neither_believed(run_folder: RunFolder) -> None:
    shutil.copytree(run_folder.point, run_folder.path / "points" / "c4-r0")
    points = told(run_folder).points
    assert [reason(one, "POINT_MISPLACED") for one in points] == ["several folders are this point: c4, c4-r0"] * 2


def test_a_point_in_another_points_place(run_folder: RunFolder) -> None:
    run_folder.write_result(conc=8)
    assert reason(point_of(run_folder), "POINT_MISPLACED") == "its point.json is of conc 8, repeat 0"


def test_a_point_that_the_plan_does_not_have(run_folder: RunFolder, plan_of: Callable[..., Any]) -> None:
    run_folder.write_plan(plan_of((2,)))
    points = {point.conc: point for point in told(run_folder).points}
    assert reason(points[4], "POINT_MISPLACED") == "the plan has no such point"


def test_records_of_another_time(run_folder: RunFolder, sample_result: Any) -> None:
    run_folder.write_result(started_ns=sample_result.started_ns - 10**12, ended_ns=sample_result.started_ns - 10**11)
    assert "the records are of another run" in reason(point_of(run_folder), "POINT_MISPLACED")


@pytest.mark.parametrize("name", ["c04", "c٤", "c0", "c4.bak", "c" + "9" * 100])
def test_what_is_no_point_is_left_out_and_named(run_folder: RunFolder, name: str) -> None:
    (run_folder.path / "points" / name).mkdir()
    run = told(run_folder)
    assert [point.conc for point in run.points] == [4]
    assert any(name in note for note in run.notes)


def test_a_replica_that_is_named_twice_is_one(run_folder: RunFolder, sample_result: Any) -> None:
    first = sample_result.replicas[0]
    run_folder.write_result(replicas=(first, first))
    assert reason(point_of(run_folder), "REPLICAS_MISSING") == "1 replicas ran, planned were 2"


@pytest.mark.parametrize("conc", [-4, 0, True, 10**30])
def test_an_impossible_concurrency_is_not_known(bare_folder: Path, conc: int) -> None:
    path = bare_folder / "profile_export_aiperf.json"
    changes = {"input_config": {"loadgen": {"concurrency": conc}}, "run_info": None}
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))
    assert report.build([inputs.load(bare_folder)]).runs[0].points[0].conc == 0


def test_versions_are_those_of_launchs_environment(run_folder: RunFolder) -> None:
    assert told(run_folder).versions == {"ai-dynamo": "1.6.1", "aiperf": "0.13.0"}


def test_a_run_is_reported_once_however_often_it_is_named(run_folder: RunFolder, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(run_folder.path)
    paths = (run_folder.path, tmp_path / "link", run_folder.path / ".." / run_folder.path.name)
    assert inputs.expand(paths) == [run_folder.path]


def test_names_that_no_file_can_hold(run_folder: RunFolder, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    odd = tmp_path / "r\udcff"
    shutil.copytree(run_folder.path, odd)
    (odd / "environment.json").write_text('{"bench": {"packages": {"a": "\\ud800"}}}')
    assert command(["analyze", str(odd), "--out", str(tmp_path / "out")], {}) == 0
    assert json.loads((tmp_path / "out" / "report.json").read_text())["runs"][0]["source"].endswith("r\udcff")


def test_a_path_that_is_too_long_or_of_two_lines_is_one_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("x" * 300, "a\n::error::b"):
        assert command(["analyze", str(tmp_path / name), "--out", str(tmp_path)], {}) == 1
        error = capsys.readouterr().err
        assert "[SB-ANALYZE-INPUT]" in error
        assert len(error.splitlines()) <= 2


def test_no_name_of_a_run_is_a_command_to_the_runner(run_folder: RunFolder, tmp_path: Path) -> None:
    status = json.loads((run_folder.path / "status.json").read_text())
    status |= {
        "outcome": "failed", "stage": "loading", "code": "X\n\x1b[2J", "message": "m",
        "evidence": ["::set-output name=verdict::x", "##[set-output name=verdict;]x"],
    }  # fmt: skip
    (run_folder.path / "status.json").write_text(json.dumps(status))
    out = io.StringIO()
    analyze_step(AnalyzeOptions((run_folder.path,), tmp_path / "out"), {"GITHUB_ACTIONS": "true"}, out)
    lines = [line.strip() for line in out.getvalue().splitlines()]
    assert not any(line.startswith("::") or "##[" in line for line in lines)
    assert "\x1b" not in out.getvalue()

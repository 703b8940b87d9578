"""The step as a whole: files, gates, broken and bare inputs."""

from __future__ import annotations

import io
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from serving_bench.analyze.step import AnalyzeOptions, run
from serving_bench.contracts import Outcome, Slo, Stage
from serving_bench.errors import Exit, GateError, InputError
from serving_bench.files import read_model
from serving_bench.report_contract import Report, ReportOutcome, Verdict

RunFolder = Any


def analyze(out: Path, *paths: Path, env: dict[str, str] | None = None, **options: Any) -> tuple[Report, str]:
    text = io.StringIO()
    report = run(AnalyzeOptions(paths=paths, out=out, **options), env or {}, text)
    return report, text.getvalue()


def test_writes_every_view_and_says_where(run_folder: RunFolder, tmp_path: Path) -> None:
    report, text = analyze(tmp_path / "out", run_folder.path)
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "comment.md",
        "report.html",
        "report.json",
        "summary.md",
    ]
    assert read_model(tmp_path / "out" / "report.json", Report) == report
    assert str(tmp_path / "out" / "report.html") in text
    lines = text.splitlines()
    row = next(line for line in lines if line.startswith("c4 "))
    assert row.split() == [
        "c4",
        "DEGRADED",
        "263",
        "0",
        "52.0",
        "49.0",
        "66.9",
        "72.1*",
        "66.3",
        "92.0%",
        "166/97",
        "met",
    ]
    assert all(len(line) <= 100 for line in lines[:-1])
    assert report.verdict.outcome is ReportOutcome.NO_BASELINE


def test_report_only_writes_report_json_alone(run_folder: RunFolder, tmp_path: Path) -> None:
    env = {"GITHUB_STEP_SUMMARY": str(tmp_path / "summary")}
    analyze(tmp_path / "out", run_folder.path, env=env, report_only=True)
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["report.json"]
    assert not (tmp_path / "summary").exists()


def test_appends_to_the_job_summary(run_folder: RunFolder, tmp_path: Path) -> None:
    target = tmp_path / "summary"
    target.write_text("before\n")
    analyze(tmp_path / "out", run_folder.path, env={"GITHUB_STEP_SUMMARY": str(target)})
    assert target.read_text() == "before\n" + (tmp_path / "out" / "summary.md").read_text()


def test_the_same_input_gives_the_same_report(run_folder: RunFolder, tmp_path: Path) -> None:
    for name in ("one", "two"):
        analyze(tmp_path / name, run_folder.path)
    for name in ("report.json", "report.html", "summary.md", "comment.md"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()


def test_report_json_holds_finite_numbers_only(run_folder: RunFolder, tmp_path: Path) -> None:
    analyze(tmp_path / "out", run_folder.path)

    def refuse(name: str) -> None:
        raise AssertionError(name)

    json.loads((tmp_path / "out" / "report.json").read_text(), parse_constant=refuse)


@pytest.mark.parametrize(
    ("make", "found"),
    [
        (str, "does not exist"),
        (lambda path: path.write_text("x"), "found a file"),
        (lambda path: path.mkdir(), "found an empty directory"),
        (lambda path: (path / "sub").mkdir(parents=True), "found a directory with sub"),
    ],
)
def test_a_path_that_holds_no_run_is_one_clear_error(tmp_path: Path, make: Any, found: str) -> None:
    path = tmp_path / "input"
    make(path)
    with pytest.raises(InputError) as caught:
        analyze(tmp_path / "out", path)
    assert caught.value.code == "SB-ANALYZE-INPUT"
    assert caught.value.message.startswith(f"{path}: {found}")
    assert "plan.json" in caught.value.message
    assert "\n" not in caught.value.message
    assert not (tmp_path / "out").exists()


def test_an_unknown_gate_is_an_error(run_folder: RunFolder, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="known are invalid, slo"):
        analyze(tmp_path / "out", run_folder.path, fail_on=frozenset({"speed"}))


def test_a_folder_of_runs_stands_for_all_of_them(tmp_path: Path, build_sample: Any, bare_folder: Path) -> None:
    folder = tmp_path / "downloads"
    build_sample(folder / "b-run")
    shutil.copytree(bare_folder, folder / "a-bare")
    report, _ = analyze(tmp_path / "out", folder)
    assert [(one.kind, one.config) for one in report.runs] == [
        ("artifacts", "a-bare"),
        ("run", "demo-2rep-dyn-mocker-kv"),
    ]


def test_a_bare_artifact_directory(bare_folder: Path, tmp_path: Path) -> None:
    report, _ = analyze(tmp_path / "out", bare_folder)
    (one,) = report.runs
    (point,) = one.points
    assert (one.kind, one.config, one.outcome, point.conc) == ("artifacts", "my-aiperf-run", None, 4)
    assert one.versions == {"aiperf": "0.13.0"}
    assert point.ttft_ms.all.n == 263
    assert {"POINT_FAILED", "REPLICA_DIED", "CLOCK_STEPPED", "WORKLOAD_MISMATCH"} <= point.validity.unchecked.keys()
    assert [reason.level for reason in point.validity.reasons] == [Verdict.DEGRADED]
    assert report.verdict.outcome is ReportOutcome.NO_BASELINE
    assert point.notes["replicas"].endswith("not exact")


def test_a_bare_directory_with_nothing_but_records(bare_folder: Path, tmp_path: Path) -> None:
    for path in bare_folder.iterdir():
        if path.name != "profile_export.jsonl":
            path.unlink()
    point = analyze(tmp_path / "out", bare_folder)[0].runs[0].points[0]
    assert (point.conc, point.ttft_ms.all.n, point.replicas) == (0, 263, ())
    assert {"PHASE_INCOMPLETE", "RECORDS_TRUNCATED", "SUMMARY_DISAGREES"} <= point.validity.unchecked.keys()


def failed_launch(run_folder: RunFolder) -> None:
    shutil.rmtree(run_folder.path / "points")
    shutil.rmtree(run_folder.path / "trace")
    run_folder.write_status(
        outcome=Outcome.FAILED,
        stage=Stage.STARTING,
        code="SB-REPLICA-DIED",
        message="replica 1 ended with status 1 before it was ready",
        evidence=("Traceback (most recent call last):", "RuntimeError: no such model"),
    )


def test_a_failed_launch_without_any_point_shows_the_reason_first(run_folder: RunFolder, tmp_path: Path) -> None:
    failed_launch(run_folder)
    report, text = analyze(tmp_path / "out", run_folder.path)
    assert report.verdict.outcome is ReportOutcome.INVALID
    assert "replica 1 ended with status 1" in report.verdict.message
    assert report.runs[0].code == "SB-REPLICA-DIED"
    assert [point.validity.reasons[0].code for point in report.runs[0].points] == ["POINT_MISSING"]
    assert "replica 1 ended with status 1" in text.splitlines()[1]
    for name in ("summary.md", "comment.md", "report.html"):
        view = (tmp_path / "out" / name).read_text()
        assert 0 < view.index("replica 1 ended with status 1") < view.index("POINT_MISSING")
        assert "RuntimeError: no such model" in view


def test_a_run_without_plan_and_points(run_folder: RunFolder, tmp_path: Path) -> None:
    failed_launch(run_folder)
    (run_folder.path / "plan.json").unlink()
    report, _ = analyze(tmp_path / "out", run_folder.path)
    assert (report.runs[0].points, report.verdict.outcome) == ((), ReportOutcome.INVALID)


@pytest.mark.parametrize("content", [None, b"{", b""])
def test_a_run_without_readable_status_is_invalid(run_folder: RunFolder, tmp_path: Path, content: bytes | None) -> None:
    path = run_folder.path / "status.json"
    path.unlink()
    if content is not None:
        path.write_bytes(content)
    report, _ = analyze(tmp_path / "out", run_folder.path)
    assert report.verdict.outcome is ReportOutcome.INVALID
    assert "status.json" in report.verdict.message


def test_a_run_that_never_ended_is_invalid(run_folder: RunFolder, tmp_path: Path) -> None:
    run_folder.write_status(outcome=Outcome.RUNNING, stage=Stage.LOADING)
    report, _ = analyze(tmp_path / "out", run_folder.path)
    assert report.verdict.outcome is ReportOutcome.INVALID
    assert "last stage was loading" in report.verdict.message


def test_a_planned_point_that_is_not_there_is_shown_as_missing(
    run_folder: RunFolder, plan_of: Any, tmp_path: Path
) -> None:
    run_folder.write_plan(plan_of(conc=(4, 8)))
    run_folder.write_status(outcome=Outcome.FAILED, stage=Stage.LOADING, code="SB-X", message="aiperf hung")
    report, _ = analyze(tmp_path / "out", run_folder.path)
    measured, missing = report.runs[0].points
    assert (measured.conc, measured.validity.verdict) == (4, Verdict.DEGRADED)
    assert (missing.conc, missing.validity.verdict, missing.requests.total) == (8, Verdict.INVALID, 0)
    assert "aiperf hung [SB-X]" in missing.validity.reasons[0].message


def test_the_invalid_gate(run_folder: RunFolder, tmp_path: Path) -> None:
    gate = frozenset({"invalid"})
    analyze(tmp_path / "fine", run_folder.path, fail_on=gate)
    run_folder.write_result(replica_exits={"0": -9})
    with pytest.raises(GateError) as caught:
        analyze(tmp_path / "out", run_folder.path, fail_on=gate)
    assert (caught.value.code, caught.value.exit_status) == ("SB-GATE-INVALID", Exit.GATE)
    assert (tmp_path / "out" / "report.html").is_file(), "the report is written before the gate speaks"


def test_the_slo_gate(run_folder: RunFolder, plan_of: Any, tmp_path: Path) -> None:
    gate = frozenset({"slo"})
    analyze(tmp_path / "met", run_folder.path, fail_on=gate)
    run_folder.write_plan(plan_of(slo=Slo(ttft_p95_ms=60.0)))
    with pytest.raises(GateError, match=r"ttft-p95-ms 66\.9 > 60\.0: missed"):
        analyze(tmp_path / "missed", run_folder.path, fail_on=gate)


def test_the_slo_gate_does_not_pass_on_what_is_not_known(run_folder: RunFolder, tmp_path: Path) -> None:
    run_folder.records.unlink()
    with pytest.raises(GateError) as caught:
        analyze(tmp_path / "out", run_folder.path, fail_on=frozenset({"slo"}))
    assert caught.value.code == "SB-GATE-SLO"


def test_the_slo_gate_does_not_pass_an_invalid_report_without_objectives(
    run_folder: RunFolder, plan_of: Any, tmp_path: Path
) -> None:
    run_folder.write_plan(plan_of(slo=Slo()))
    run_folder.write_result(replica_exits={"0": -9})
    with pytest.raises(GateError, match="no objective can be said to be met"):
        analyze(tmp_path / "out", run_folder.path, fail_on=frozenset({"slo"}))


FILES = (
    "plan.json", "status.json", "environment.json", "rooms.csv", "dataset.txt", "trace/start0.000000.jsonl.gz",
    "points/c4/point.json", "points/c4/metrics-after/router.prom", "points/c4/metrics-before/replica.0.prom",
    "points/c4/aiperf/profile_export.jsonl", "points/c4/aiperf/profile_export_aiperf.json",
    "points/c4/aiperf/phase_manifest.json", "points/c4/aiperf/server_metrics_export.json",
)  # fmt: skip


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(name=st.sampled_from(FILES), cut=st.floats(0, 1), noise=st.binary(max_size=40))
def test_whatever_is_broken_there_is_a_report(
    name: str, cut: float, noise: bytes, run_folder: RunFolder, tmp_path: Path
) -> None:
    """A file of a run cut anywhere, with any bytes after the cut: never anything but a report."""
    path = run_folder.path / name
    whole = path.read_bytes()
    try:
        path.write_bytes(whole[: int(cut * len(whole))] + noise)
        report, _ = analyze(tmp_path / "out", run_folder.path)
        assert report.runs[0].points
    finally:
        path.write_bytes(whole)

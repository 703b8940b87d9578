"""The analyze step: read directories, build the report, write the views."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from serving_bench import gha
from serving_bench.analyze import console, html, inputs, markdown, report
from serving_bench.analyze import format as fmt
from serving_bench.errors import GateError, InputError
from serving_bench.files import write_atomic, write_model
from serving_bench.report_contract import Point, Report, ReportOutcome, Run

GATES = frozenset({"invalid", "slo"})


@dataclass(frozen=True)
class AnalyzeOptions:
    """What the command was asked for."""

    paths: tuple[Path, ...]
    out: Path
    report_only: bool = False
    """Write report.json and no views."""
    fail_on: frozenset[str] = frozenset()
    """Gates: ``invalid``, ``slo``."""


def run(options: AnalyzeOptions, env: Mapping[str, str], out: TextIO) -> Report:
    """Analyze the paths and write the report into ``options.out``.

    Raises ``InputError`` for a path that holds no run, and ``GateError`` when a
    gate that was asked for says no; the report is written before that.
    """
    _check(options)
    found = report.build(inputs.load(path) for path in inputs.expand(options.paths))
    write_model(options.out / "report.json", found)
    where = "report.json" if options.report_only else _write_views(found, options.out, env)
    with suppress(BrokenPipeError):  # a reader that has gone (`| head`) costs neither outputs nor gates
        print(gha.harmless(env, console.text(found)), end="", file=out)
        print(f"report: {options.out / where}", file=out)
    gha.set_output(env, "report-path", str(options.out))
    gha.set_output(env, "verdict", found.verdict.outcome.value)
    _gate(found, options.fail_on)
    return found


def _check(options: AnalyzeOptions) -> None:
    unknown = sorted(options.fail_on - GATES)
    if unknown:
        raise InputError(
            f"unknown gate {unknown[0]!r}, known are {', '.join(sorted(GATES))}", code="SB-ANALYZE-GATE-UNKNOWN"
        )
    if not options.paths:
        raise InputError("no path was given to analyze", code="SB-ANALYZE-INPUT", hint="give a run directory")


def _write_views(found: Report, folder: Path, env: Mapping[str, str]) -> str:
    """Write the views; returns what to tell about them."""
    summary = markdown.summary(found)
    write_atomic(folder / "summary.md", summary)
    write_atomic(folder / "comment.md", markdown.comment(found))
    write_atomic(folder / "report.html", html.page(found))
    gha.append_summary(env, summary)
    return "report.html (and report.json, summary.md, comment.md beside it)"


def _gate(found: Report, fail_on: frozenset[str]) -> None:
    """A gate passes on evidence only: what is not known was not met."""
    invalid = found.verdict.outcome is ReportOutcome.INVALID
    if "invalid" in fail_on and invalid:
        raise GateError(f"the report is INVALID: {found.verdict.message}", code="SB-GATE-INVALID")
    if "slo" not in fail_on:
        return
    missed = [line for run in found.runs for point in run.points for line in _missed(run, point)]
    if missed:
        more = f", and {len(missed) - 1} more" if len(missed) > 1 else ""
        raise GateError(f"{missed[0]}{more}", code="SB-GATE-SLO")
    if invalid:
        raise GateError(f"no objective can be said to be met: {found.verdict.message}", code="SB-GATE-SLO")


def _missed(run: Run, point: Point) -> list[str]:
    where = f"{run.config} {fmt.point_name(point)}"
    return [f"{where}: {fmt.objective(check)}" for check in point.slo if check.met is not True]

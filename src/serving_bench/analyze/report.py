"""From loaded runs to a report: pure."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from typing import Any

from serving_bench import __version__
from serving_bench.analyze import point as points
from serving_bench.analyze.inputs import LoadedRun
from serving_bench.contracts import Outcome, Plan, ProcessSpec
from serving_bench.report_contract import Point, Report, ReportOutcome, ReportVerdict, Run, Verdict


def build(runs: Iterable[LoadedRun]) -> Report:
    """Compute, judge and sum up."""
    told = tuple(_run(run) for run in runs)
    return Report(tool_version=__version__, runs=told, verdict=verdict(told))


def _run(run: LoadedRun) -> Run:
    trace = points.index(run)
    measured = tuple(points.build(run, one, trace) for one in run.points)
    absent = _absent(run, {(one.conc, one.repeat) for one in measured})
    status, notes = run.status, list(run.troubles)
    if run.bare:
        notes.append("a bare aiperf artifact directory: there is no plan, status or request trace to check against")
    return Run(
        kind="artifacts" if run.bare else "run",
        config=run.plan.config if run.plan else run.name,
        cluster=run.plan.cluster.name if run.plan else "",
        source=run.source,
        outcome=status.outcome.value if status else None,
        stage=status.stage.value if status and status.outcome is not Outcome.PASSED else None,
        code=status.code if status else None,
        message=status.message if status else "",
        evidence=status.evidence if status else (),
        versions=dict(run.versions) or _aiperf_version(run),
        points=tuple(sorted((*measured, *absent), key=lambda one: (one.conc, one.repeat))),
        notes=tuple(notes),
        **(planned(run.plan) if run.plan else {}),
    )


def planned(plan: Plan) -> dict[str, Any]:
    """What a run's entry takes from its plan."""
    return {
        "description": plan.description,
        "comparability": plan.comparability,
        "workload": plan.workload,
        "engine": plan.engine.kind,
        "router": plan.router.kind if plan.router else None,
        "commands": {name: _command(one) for name, one in (("serve", plan.engine), ("router", plan.router)) if one},
        "image": plan.engine.image,
        "model": plan.model.id or plan.model.served_name,
        "scenario": plan.scenario.name,
        "cache_state": plan.cache.value,
        "overrides": plan.overrides,
        "replicas": plan.replicas,
        "gpus": plan.gpus,
    }


def _command(process: ProcessSpec) -> str:
    variables = (f"{name}={shlex.quote(value)}" for name, value in process.env.items())
    return " ".join((*variables, shlex.join(process.argv)))


def _aiperf_version(run: LoadedRun) -> dict[str, str]:
    found = (one.artifacts.summary.aiperf_version for one in run.points if one.artifacts.summary)
    return next(({"aiperf": version} for version in found if version), {})


def _absent(run: LoadedRun, measured: set[tuple[int, int]]) -> list[Point]:
    """Planned points of which there is no directory."""
    if run.plan is None:
        return []
    planned = {(conc, repeat) for conc in run.plan.conc for repeat in range(run.plan.repeats)}
    return [points.missing(run.plan, *place, _why_missing(run)) for place in sorted(planned - measured)]


def _why_missing(run: LoadedRun) -> str:
    status = run.status
    if status is None:
        return "not measured: the run left no readable status.json"
    if status.outcome is Outcome.RUNNING:
        return f"not measured: the run never ended, its last stage was {status.stage.value}"
    if status.outcome is Outcome.PASSED:
        return "not measured, though the run says that it passed"
    code = f" [{status.code}]" if status.code else ""
    return f"not measured: the run {status.outcome.value} while {status.stage.value}: {status.message}{code}"


def failure(run: Run) -> str | None:
    """Why a run as a whole is no good, or null; bare artifact directories have no outcome."""
    if run.outcome == Outcome.PASSED.value:
        return None
    if run.outcome is None:
        return None if run.kind == "artifacts" else "the run left no readable status.json"
    if run.outcome == Outcome.RUNNING.value:
        return f"the run never ended: its last stage was {run.stage}"
    code = f" [{run.code}]" if run.code else ""
    return f"the run {run.outcome} while {run.stage}: {run.message or 'no message'}{code}"


def _invalid(points: Iterable[Point]) -> list[Point]:
    return [point for point in points if point.validity.verdict is Verdict.INVALID]


def verdict(runs: tuple[Run, ...]) -> ReportVerdict:
    """INVALID as soon as one run failed or one point is INVALID; there is no baseline to compare with yet."""
    for run in runs:
        if why := failure(run):
            return ReportVerdict(outcome=ReportOutcome.INVALID, message=f"{run.config}: {why}")
    everything = [point for run in runs for point in run.points]
    if not everything:
        return ReportVerdict(outcome=ReportOutcome.INVALID, message="there is no point to report on")
    invalid = _invalid(everything)
    if invalid:
        first = invalid[0].validity.reasons[0]
        message = f"{len(invalid)} of {len(everything)} points INVALID: {first.message} [{first.code}]"
        return ReportVerdict(outcome=ReportOutcome.INVALID, message=message)
    return ReportVerdict(outcome=ReportOutcome.NO_BASELINE, message=_sum_up(everything))


def _sum_up(points: list[Point]) -> str:
    degraded = sum(point.validity.verdict is Verdict.DEGRADED for point in points)
    counts = {"VALID": len(points) - degraded, "DEGRADED": degraded}
    told = " and ".join(f"{count} of {len(points)} points {verdict}" for verdict, count in counts.items() if count)
    return f"{told}; there is no baseline to compare with"

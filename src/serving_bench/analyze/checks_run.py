"""Checks that decide whether a point measured what it says: INVALID if not.

Each takes the evidence and returns null when all is well, a message when it is
not, or ``Unchecked`` when there was nothing to look at.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from serving_bench.analyze.evidence import NS_PER_MS, NS_PER_S, Evidence
from serving_bench.analyze.inputs import ROUTER
from serving_bench.analyze.join import UNKNOWN
from serving_bench.contracts import Outcome, workload_hash

ERROR_RATE_LIMIT = 0.01
"""Where no scenario says otherwise."""

CLOCK_STEP_S = 0.25
CLOCK_SLEW = 500e-6
"""A clock that is being slewed runs up to 500 ppm off: that is no step."""


@dataclass(frozen=True)
class Unchecked:
    """The check had nothing to look at, and why."""

    reason: str


Finding = str | Unchecked | None

NO_PLAN = Unchecked("no plan: not a run directory of launch")
NO_POINT = Unchecked("no point.json: not a run directory of launch")
NO_RECORDS = Unchecked("no profiling request")


def plan_unreadable(evidence: Evidence) -> Finding:
    run = evidence.run
    if run.bare:
        return NO_PLAN
    lost = [trouble for trouble in run.troubles if "plan.json" in trouble]
    return lost[0] if run.plan is None and lost else None


def point_failed(evidence: Evidence) -> Finding:
    result, point = evidence.point.result, evidence.point
    if evidence.run.bare:
        return NO_POINT
    if result is None:
        broken = [trouble for trouble in point.troubles if "point.json" in trouble]
        return broken[0] if broken else "point.json is missing: the point was not finished"
    if result.outcome is not Outcome.PASSED:
        code = f" [{result.code}]" if result.code else ""
        return f"the point {_ended(result.outcome)}: {result.message or 'no message'}{code}"
    if result.client_exit:
        return f"the load generator ended with status {result.client_exit}"
    return None


def _ended(outcome: Outcome) -> str:
    return {"running": "never ended", "failed": "failed", "interrupted": "was interrupted"}.get(
        outcome.value, outcome.value
    )


def records_missing(evidence: Evidence) -> Finding:
    records = evidence.point.artifacts.records
    if not records.present:
        return "there is no profile_export.jsonl"
    if not records.profiling.n:
        return "profile_export.jsonl holds no profiling record"
    return None


def records_damaged(evidence: Evidence) -> Finding:
    records = evidence.point.artifacts.records
    if not records.present:
        return NO_RECORDS
    if records.damaged:
        kinds = ", ".join(
            f"{count} {kind}" for kind, count in sorted(records.oddities.items()) if kind.endswith("line")
        )
        return f"profile_export.jsonl is damaged: {kinds}"
    return None


def records_truncated(evidence: Evidence) -> Finding:
    """Compare with the count of the manifest, or else of the summary."""
    artifacts = evidence.point.artifacts
    found = artifacts.records.profiling.n
    expected, source = None, "phase_manifest.json"
    if artifacts.phase is not None:
        expected = artifacts.phase.total_request_count
    if expected is None and artifacts.summary is not None:
        expected, source = _summary_count(evidence), "profile_export_aiperf.json"
    if expected is None:
        lost = "neither aiperf's manifest nor its summary gives a count of requests"
        return Unchecked(lost) if evidence.run.bare else lost
    if found != expected:
        return f"{found} profiling records, but {source} counts {expected}"
    return None


def _summary_count(evidence: Evidence) -> int | None:
    summary = evidence.point.artifacts.summary
    if summary is None or summary.request_count is None or summary.request_count.avg is None:
        return None
    errors = summary.error_request_count.avg if summary.error_request_count else 0.0
    return round(summary.request_count.avg + (errors or 0.0))


def no_completed_request(evidence: Evidence) -> Finding:
    if evidence.completed:
        return None
    kinds = evidence.point.artifacts.records.errors
    named = f": {_kinds(kinds)}" if kinds else ""
    return f"none of {evidence.records.n} requests completed{named}"


def _kinds(errors: dict[str, int]) -> str:
    ranked = sorted(errors.items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(f"{kind}: {count}" for kind, count in ranked[:3]) + (", …" if len(ranked) > 3 else "")  # noqa: PLR2004


def error_rate(evidence: Evidence) -> Finding:
    if not evidence.records.n:
        return NO_RECORDS
    plan = evidence.run.plan
    limit = plan.scenario.error_rate_limit if plan else ERROR_RATE_LIMIT
    errors = int(evidence.records.failed.sum())
    rate = errors / evidence.records.n
    if rate > limit:
        kinds = _kinds(evidence.point.artifacts.records.errors)
        return f"{errors} of {evidence.records.n} requests failed ({rate:.1%}, limit {limit:.1%}): {kinds}"
    return None


def phase_incomplete(evidence: Evidence) -> Finding:
    summary, phase = evidence.point.artifacts.summary, evidence.point.artifacts.phase
    if summary is None and phase is None:
        lost = "aiperf wrote neither a summary nor a phase manifest"
        return Unchecked(lost) if evidence.run.bare else f"{lost}: nothing says that the phase was completed"
    if (summary is not None and summary.was_cancelled) or (phase is not None and phase.was_cancelled):
        return "the profiling phase was cancelled"
    if summary is not None and summary.is_complete is False:
        return "aiperf says that the profiling phase is incomplete"
    return _shorter_than_planned(evidence)


def _shorter_than_planned(evidence: Evidence) -> Finding:
    plan = evidence.run.plan
    if plan is None:
        return None
    load = plan.scenario.load
    replays = len(set(evidence.records.correlation))
    if load.requests is not None and evidence.records.n < load.requests:
        return f"{evidence.records.n} requests, planned were {load.requests}"
    if load.conversations is not None and replays < load.conversations:
        return f"{replays} conversations, planned were {load.conversations}"
    return None


def point_misplaced(evidence: Evidence) -> Finding:
    """The records must be those of the point under whose name they lie."""
    run, point = evidence.run, evidence.point
    if run.bare:
        return NO_POINT
    twins = [one.folder for one in run.points if (one.conc, one.repeat) == (point.conc, point.repeat)]
    if len(twins) > 1:
        return f"several folders are this point: {', '.join(twins)}"
    if run.plan and (point.conc not in run.plan.conc or point.repeat >= run.plan.repeats):
        return "the plan has no such point"
    result = point.result
    if result and (result.conc, result.repeat) != (point.conc, point.repeat):
        return f"its point.json is of conc {result.conc}, repeat {result.repeat}"
    loaded = point.artifacts.concurrency
    if loaded not in (None, point.conc):
        return f"aiperf's summary is of a run at concurrency {loaded}"
    return _other_time(evidence)


def _other_time(evidence: Evidence) -> Finding:
    result, records = evidence.point.result, evidence.records
    if result is None or result.ended_ns is None or not records.n:
        return None
    first, last = int(np.min(records.start_ns)), int(np.max(records.end_ns))
    slack = round((CLOCK_STEP_S + abs(result.clock_step_s)) * NS_PER_S)
    if first < result.started_ns - slack or last > result.ended_ns + slack:
        return "its requests were not sent while its load generator ran: the records are of another run"
    return None


def replica_died(evidence: Evidence) -> Finding:
    result = evidence.point.result
    if result is None:
        return NO_POINT
    dead = {name: status for name, status in result.replica_exits.items() if name != ROUTER}
    if dead:
        return "; ".join(
            f"replica {name} ended with status {status} during load" for name, status in sorted(dead.items())
        )
    return None


def router_died(evidence: Evidence) -> Finding:
    result = evidence.point.result
    if result is None:
        return NO_POINT
    status = result.replica_exits.get(ROUTER)
    return None if status is None else f"the router ended with status {status} during load"


def replica_starved(evidence: Evidence) -> Finding:
    counts = {one.index: one.requests for one in evidence.replicas}
    if not counts or any(count is None for count in counts.values()):
        return Unchecked("requests per replica are not known")
    unknown = evidence.joined.found & (evidence.replica == UNKNOWN)
    if unknown.any():
        return Unchecked(f"{int(unknown.sum())} requests went to workers that no replica is known for")
    starved = sorted(index for index, count in counts.items() if not count)
    if starved:
        names = ", ".join(str(index) for index in starved)
        return f"no profiling request reached replica {names}"
    return None


def replicas_missing(evidence: Evidence) -> Finding:
    plan, result = evidence.run.plan, evidence.point.result
    if plan is None or result is None:
        return NO_PLAN if plan is None else NO_POINT
    ran = len({one.index for one in result.replicas})
    if ran < plan.replicas:
        return f"{ran} replicas ran, planned were {plan.replicas}"
    return None


def counters_backwards(evidence: Evidence) -> Finding:
    if not evidence.point.scrapes:
        return Unchecked("no own scrapes before and after the point")
    if evidence.backwards:
        endpoint, names = next(iter(evidence.backwards.items()))
        more = f" and {len(names) - 1} more" if len(names) > 1 else ""
        return f"{names[0]}{more} of {endpoint} went down during the point: its process started anew"
    return None


def workload_mismatch(evidence: Evidence) -> Finding:
    run = evidence.run
    if run.plan is None:
        return NO_PLAN
    dataset = run.plan.scenario.dataset
    if workload_hash(run.plan.scenario) != run.plan.workload:
        return "the plan's workload hash is not that of its scenario: the plan was edited"
    if run.rooms is not None and dataset.rooms_sha256 and run.rooms_sha256 != dataset.rooms_sha256:
        return "rooms.csv is not the rooms plan that the plan names"
    if not run.dataset_sha256:
        return Unchecked("dataset.txt names no digest")
    if dataset.sha256 not in run.dataset_sha256:
        return f"the dataset used has another digest than the plan's {dataset.sha256[:12]}…"
    return None


def clock_stepped(evidence: Evidence) -> Finding:
    result = evidence.point.result
    if result is None:
        return NO_POINT
    length = ((result.ended_ns or result.started_ns) - result.started_ns) / 1e9
    if abs(result.clock_step_s) > CLOCK_STEP_S + CLOCK_SLEW * max(0.0, length):
        return f"the wall clock stepped by {result.clock_step_s:+.2f} s during the point"
    return None


def warmup_in_window(evidence: Evidence) -> Finding:
    records, warmup = evidence.records, evidence.warmup
    if not warmup.n or not records.n:
        return Unchecked("no warm-up request") if not warmup.n else NO_RECORDS
    overlap = (np.max(warmup.end_ns) - np.min(records.start_ns)) / NS_PER_MS
    if overlap > 0:
        return f"the warm-up was still running for {overlap:.0f} ms after the first profiling request was sent"
    return None

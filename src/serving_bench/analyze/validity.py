"""The table of checks, and the verdict on a point."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from serving_bench.analyze import checks_quality as quality
from serving_bench.analyze import checks_run as basic
from serving_bench.analyze.checks_run import Finding, Unchecked
from serving_bench.analyze.evidence import Evidence
from serving_bench.report_contract import Reason, Validity, Verdict


@dataclass(frozen=True)
class Check:
    """A check under its stable code, and what a finding makes of the point."""

    code: str
    level: Verdict
    look: Callable[[Evidence], Finding]


CHECKS = (
    Check("PLAN_UNREADABLE", Verdict.INVALID, basic.plan_unreadable),
    Check("POINT_FAILED", Verdict.INVALID, basic.point_failed),
    Check("POINT_MISPLACED", Verdict.INVALID, basic.point_misplaced),
    Check("REPLICA_DIED", Verdict.INVALID, basic.replica_died),
    Check("ROUTER_DIED", Verdict.INVALID, basic.router_died),
    Check("RECORDS_MISSING", Verdict.INVALID, basic.records_missing),
    Check("RECORDS_DAMAGED", Verdict.INVALID, basic.records_damaged),
    Check("RECORDS_TRUNCATED", Verdict.INVALID, basic.records_truncated),
    Check("NO_COMPLETED_REQUEST", Verdict.INVALID, basic.no_completed_request),
    Check("ERROR_RATE", Verdict.INVALID, basic.error_rate),
    Check("PHASE_INCOMPLETE", Verdict.INVALID, basic.phase_incomplete),
    Check("REPLICA_STARVED", Verdict.INVALID, basic.replica_starved),
    Check("REPLICAS_MISSING", Verdict.INVALID, basic.replicas_missing),
    Check("COUNTERS_BACKWARDS", Verdict.INVALID, basic.counters_backwards),
    Check("WORKLOAD_MISMATCH", Verdict.INVALID, basic.workload_mismatch),
    Check("CLOCK_STEPPED", Verdict.INVALID, basic.clock_stepped),
    Check("WARMUP_IN_WINDOW", Verdict.INVALID, basic.warmup_in_window),
    Check("ROOMS_UNKNOWN", Verdict.DEGRADED, quality.rooms_unknown),
    Check("TTFT_MISSING", Verdict.DEGRADED, quality.ttft_missing),
    Check("WARMUP_MISSING", Verdict.DEGRADED, quality.warmup_missing),
    Check("WARMUP_REPLAYED", Verdict.DEGRADED, quality.warmup_replayed),
    Check("CACHE_NOT_FRESH", Verdict.DEGRADED, quality.cache_not_fresh),
    Check("PROMPTS_REPEATED", Verdict.DEGRADED, quality.prompts_repeated),
    Check("OPENING_WAVE", Verdict.DEGRADED, quality.opening_wave),
    Check("CLIENT_BEHIND", Verdict.DEGRADED, quality.client_behind),
    Check("FEW_SAMPLES", Verdict.DEGRADED, quality.few_samples),
    Check("IMBALANCE", Verdict.DEGRADED, quality.uneven),
    Check("CONTRADICTION", Verdict.DEGRADED, quality.contradiction),
    Check("JOIN_INCOMPLETE", Verdict.DEGRADED, quality.join_incomplete),
    Check("SUMMARY_DISAGREES", Verdict.DEGRADED, quality.summary_disagrees),
)
"""In the order in which reasons are shown: the cause before what follows from it."""

POINT_MISSING = "POINT_MISSING"
"""Code of a planned point of which there is nothing; no check, since there is nothing to check."""

_ORDER = (Verdict.VALID, Verdict.DEGRADED, Verdict.INVALID)


def judge(evidence: Evidence) -> Validity:
    """Run every check; the gravest finding is the verdict."""
    reasons: list[Reason] = []
    checked: list[str] = []
    unchecked: dict[str, str] = {}
    for check in CHECKS:
        finding = check.look(evidence)
        if isinstance(finding, Unchecked):
            unchecked[check.code] = finding.reason
            continue
        checked.append(check.code)
        if finding is not None:
            reasons.append(Reason(code=check.code, message=finding, level=check.level))
    verdict = max((reason.level for reason in reasons), key=_ORDER.index, default=Verdict.VALID)
    reasons.sort(key=lambda reason: -_ORDER.index(reason.level))
    return Validity(verdict=verdict, reasons=tuple(reasons), checked=tuple(checked), unchecked=unchecked)


def missing_point(message: str) -> Validity:
    """The verdict on a planned point that was never measured."""
    reason = Reason(code=POINT_MISSING, message=message, level=Verdict.INVALID)
    return Validity(verdict=Verdict.INVALID, reasons=(reason,))

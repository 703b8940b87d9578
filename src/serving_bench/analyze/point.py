"""From a loaded point to its entry in the report."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from serving_bench.analyze import cache, join, misses, routing, stats, turns, validity
from serving_bench.analyze.bootstrap import room_weights
from serving_bench.analyze.evidence import Evidence
from serving_bench.analyze.inputs import LoadedPoint, LoadedRun
from serving_bench.analyze.misses import Causes
from serving_bench.contracts import Plan, Slo
from serving_bench.report_contract import (
    ByTurn,
    Cache,
    Distribution,
    Point,
    Requests,
    SloCheck,
    Validity,
    Verdict,
)

_EMPTY = Distribution(n=0)
_TTFT_LIMITS = {"ttft-p50-ms": "p50", "ttft-p90-ms": "p90", "ttft-p95-ms": "p95", "ttft-p99-ms": "p99"}


@dataclass(frozen=True)
class TraceIndex:
    """A run's trace, prepared once for all of its points."""

    causes: Sequence[Causes | None]
    places: Mapping[str, int]


def index(run: LoadedRun) -> TraceIndex:
    requests = run.trace.requests
    told = {
        request_id: int(cached)
        for point in run.points
        for records in (point.artifacts.records.profiling, point.artifacts.records.warmup)
        for request_id, cached in zip(records.request_id, records.cached_tokens.tolist(), strict=True)
        if requests and request_id and not math.isnan(cached)
    }
    return TraceIndex(misses.explain(requests, told), join.index_trace(requests))


def missing(plan: Plan, conc: int, repeat: int, why: str) -> Point:
    """A planned point of which nothing was measured."""
    judged, requests = validity.missing_point(why), Requests(total=0, errors=0, cancelled=0)
    return Point(
        conc=conc,
        repeat=repeat,
        validity=judged,
        requests=requests,
        ttft_ms=ByTurn(all=_EMPTY, first=_EMPTY, later=_EMPTY),
        itl_ms=_EMPTY,
        e2e_ms=_EMPTY,
        cache=Cache(),
        slo=objectives(plan.slo, _EMPTY, _EMPTY, requests, judged),
        notes={"ttft_ms": "the point was not measured"},
    )


def _window(point: LoadedPoint, places: routing.Endpoints) -> cache.Window:
    if places.own:
        return cache.own_window(places.frontend, places.growths, point.artifacts.records.warmup)
    return cache.aiperf_window(places.frontend, places.growths)


def _gather(run: LoadedRun, point: LoadedPoint, trace: TraceIndex, notes: stats.Notes) -> Evidence:
    records = point.artifacts.records.profiling
    assigned = turns.assign(records, run.rooms)
    weights = room_weights(max(1, assigned.rooms))
    joined = join.join(records, run.trace.requests, trace.causes, trace.places)
    replica = join.replica_of(joined, routing.worker_map(point))
    places = routing.endpoints(point)
    replicas = routing.per_replica(places, joined, replica, notes)
    return Evidence(
        run=run,
        point=point,
        turns=assigned,
        weights=weights,
        joined=joined,
        causes=trace.causes,
        replica=replica,
        replicas=replicas,
        imbalance=routing.imbalance(replicas),
        ttft_ms=stats.by_turn(records.ttft_ms, records.completed, assigned, weights, notes),
        cache=cache.ledger(records, joined, assigned, _window(point, places), notes),
        backwards=routing.went_backwards(point),
    )


def build(run: LoadedRun, point: LoadedPoint, trace: TraceIndex) -> Point:
    """Compute and judge one point."""
    notes = stats.Notes()
    evidence = _gather(run, point, trace, notes)
    if not point.conc:
        notes.add("conc", "aiperf's files name no concurrency")
    records = evidence.records
    judged = validity.judge(evidence)
    itl, e2e = (
        stats.distribution(
            stats.Values(column, evidence.turns.room).where(records.completed), evidence.weights, notes, path
        )
        for column, path in ((records.itl_ms, "itl_ms"), (records.latency_ms, "e2e_ms"))
    )
    requests = _requests(evidence)
    return Point(
        conc=point.conc,
        repeat=point.repeat,
        validity=judged,
        requests=requests,
        ttft_ms=evidence.ttft_ms,
        itl_ms=itl,
        e2e_ms=e2e,
        cache=evidence.cache,
        anatomy_ms=join.anatomy(records, evidence.joined, evidence.turns),
        replicas=evidence.replicas,
        imbalance=evidence.imbalance,
        sessions_moved=_sessions_moved(evidence, notes),
        joined_share=evidence.joined_share,
        slo=objectives(run.plan.slo, evidence.ttft_ms.all, itl, requests, judged) if run.plan else (),
        errors=point.artifacts.records.errors,
        oddities=_oddities(evidence),
        notes=notes.reasons,
    )


def _requests(evidence: Evidence) -> Requests:
    records, window = evidence.records, evidence.window_s
    return Requests(
        total=records.n,
        errors=int(records.failed.sum()),
        cancelled=int((records.cancelled & ~records.failed).sum()),
        warmup=evidence.warmup.n,
        per_s=evidence.completed / window if window else None,
        window_s=window,
    )


def _sessions_moved(evidence: Evidence, notes: stats.Notes) -> int | None:
    if not np.any(evidence.replica != join.UNKNOWN):
        notes.add("sessions_moved", "needs the request trace")
        return None
    return join.sessions_moved(evidence.records, evidence.replica)


def _oddities(evidence: Evidence) -> dict[str, int]:
    """What was tolerated, with the troubles of single files counted once each."""
    found = dict(evidence.point.artifacts.records.oddities)
    found |= evidence.run.trace.oddities or {}
    found |= dict.fromkeys((*evidence.point.troubles, *evidence.point.artifacts.troubles), 1)
    if evidence.turns.outside_plan:
        found["record of a conversation that the rooms plan does not know"] = evidence.turns.outside_plan
    return {name: count for name, count in found.items() if count}


def objectives(
    slo: Slo, ttft: Distribution, itl: Distribution, requests: Requests, judged: Validity
) -> tuple[SloCheck, ...]:
    """Each objective of the plan; whether it is met is not said where the point is INVALID."""
    limits = {name.replace("_", "-"): limit for name, limit in slo.model_dump().items() if limit is not None}
    measured = {name: getattr(ttft, field) for name, field in _TTFT_LIMITS.items()}
    measured["itl-p95-ms"] = itl.p95
    measured["error-rate"] = requests.errors / requests.total if requests.total else None
    sure = judged.verdict is not Verdict.INVALID
    return tuple(
        SloCheck(
            name=name,
            limit=limit,
            measured=measured[name],
            met=measured[name] <= limit if sure and measured[name] is not None else None,
        )
        for name, limit in limits.items()
    )

"""Checks that lower a point to DEGRADED: its numbers stand, with a caution."""

from __future__ import annotations

from collections import Counter

import numpy as np

from serving_bench.analyze.cache import TOLERATED_SPREAD
from serving_bench.analyze.checks_run import NO_PLAN, NO_RECORDS, Finding, Unchecked
from serving_bench.analyze.evidence import Evidence
from serving_bench.analyze.stats import ENOUGH_BEYOND, SMALLEST_N, beyond
from serving_bench.contracts import CacheState

PRIMARY_PERCENTILE = 95
JOIN_LIMIT = 0.99
TTFT_LIMIT = 0.99
CLIENT_SHARE_LIMIT = 0.25
REPLAYED_LIMIT = 0.01
SUMMARY_TOLERANCE = 0.005
SUMMARY_TOLERANCE_MS = 0.05

_NO_TRACE = Unchecked("no request trace")


def opening_wave(evidence: Evidence) -> Finding:
    """The first ``conc`` requests meet an empty system all at once."""
    records = evidence.records
    known = records.completed & ~np.isnan(records.ttft_ms)
    ttft, conc = records.ttft_ms[known], evidence.point.conc
    if len(ttft) < SMALLEST_N[PRIMARY_PERCENTILE] or conc < 1 or conc >= len(ttft):
        return Unchecked("too few requests, or no concurrency, to tell an opening wave")
    tail = ttft > np.percentile(ttft, PRIMARY_PERCENTILE)
    wave = np.argsort(records.start_ns[known], kind="stable")[:conc]
    inside, total = int(tail[wave].sum()), int(tail.sum())
    if inside * 2 > total:
        return f"the first {conc} requests hold {inside} of the {total} samples above TTFT p{PRIMARY_PERCENTILE}"
    return None


def prompts_repeated(evidence: Evidence) -> Finding:
    plan = evidence.run.plan
    if plan is None:
        return NO_PLAN
    if not plan.scenario.unique_prompts:
        return Unchecked("the scenario does not say that prompts are unique")
    hashed = (one for one in evidence.joined.traced if one is not None and len(one.hashes))
    prompts = [(one.input_tokens, int(one.hashes[-1])) for one in hashed]
    if not prompts:
        return _NO_TRACE
    if len(set(prompts)) < len(prompts):
        told = "though the scenario says they are unique"
        return f"{len(set(prompts))} different prompts in {len(prompts)} requests, {told}"
    return None


def cache_not_fresh(evidence: Evidence) -> Finding:
    """In an empty cache at least one of the first requests with a prefix finds nothing on its replica."""
    plan = evidence.run.plan
    if plan is None:
        return NO_PLAN
    if plan.cache is not CacheState.FRESH:
        return Unchecked(f"the plan says the cache is {plan.cache.value}")
    least = _least_cached_at_start(evidence)
    if not least:
        return _NO_TRACE
    held = max(least.values())
    if held:
        return f"the cache held {held} tokens of a prompt before anything of that prompt had been sent to the replica"
    return None


def _least_cached_at_start(evidence: Evidence) -> dict[tuple[int, int | None, int], int]:
    """(start, worker, first block) → least cached tokens of its opening requests, for the starts of this point."""
    starts = {one.start for one in evidence.joined.traced if one is not None}
    least: dict[tuple[int, int | None, int], int] = {}
    for one, cause in zip(evidence.run.trace.requests, evidence.causes, strict=True):
        if one.start in starts and cause is not None and cause.opening:
            place = (one.start, one.worker, int(one.hashes[0]))
            least[place] = min(cause.cached, least.get(place, cause.cached))
    return least


def warmup_replayed(evidence: Evidence) -> Finding:
    """Conversations of the warm-up that the profiling phase plays again find their own blocks."""
    plan = evidence.run.plan
    if plan is not None and plan.cache is not CacheState.FRESH:
        return Unchecked(f"the plan says the cache is {plan.cache.value}")
    warmed = {name for name in evidence.warmup.conversation if name}
    if not warmed or not evidence.records.n:
        return Unchecked("no warm-up request names a conversation") if not warmed else NO_RECORDS
    again = sum(name in warmed for name in evidence.records.conversation)
    if again > REPLAYED_LIMIT * evidence.records.n:
        return f"{again} of {evidence.records.n} requests belong to conversations that the warm-up had played already"
    return None


def warmup_missing(evidence: Evidence) -> Finding:
    plan = evidence.run.plan
    if plan is None:
        return NO_PLAN
    wanted = plan.scenario.warmup
    if wanted.conversations is None and wanted.requests is None and wanted.duration_s is None:
        return Unchecked("the scenario has no warm-up")
    return None if evidence.warmup.n else "the scenario has a warm-up, but no warm-up request is on record"


def few_samples(evidence: Evidence) -> Finding:
    n = evidence.ttft_ms.all.n
    if not n:
        return NO_RECORDS
    if beyond(n, PRIMARY_PERCENTILE) < ENOUGH_BEYOND:
        found = beyond(n, PRIMARY_PERCENTILE)
        return f"{found} of {n} samples lie beyond TTFT p{PRIMARY_PERCENTILE}, fewer than {ENOUGH_BEYOND}"
    return None


def uneven(evidence: Evidence) -> Finding:
    plan = evidence.run.plan
    limit = plan.scenario.max_imbalance if plan else None
    if limit is None:
        return Unchecked("the scenario sets no limit")
    if evidence.imbalance is None:
        return Unchecked("requests per replica are not known")
    if evidence.imbalance > limit:
        return f"the busiest replica got {evidence.imbalance:.2f} times the mean, the scenario allows {limit:.2f}"
    return None


def contradiction(evidence: Evidence) -> Finding:
    spread = evidence.cache.spread
    if spread is None:
        return Unchecked("fewer than two witnesses of cached tokens")
    if spread > TOLERATED_SPREAD:
        told = ", ".join(f"{one.name} {one.share:.1%}" for one in evidence.cache.witnesses if one.share is not None)
        return f"witnesses of the cached share differ by {spread * 100:.1f} points: {told}"
    return None


def rooms_unknown(evidence: Evidence) -> Finding:
    """Without its rooms plan a handed-over call counts as two, and its second first turn as a first turn."""
    run, outside = evidence.run, evidence.turns.outside_plan
    if run.plan is None:
        return NO_PLAN
    if not run.plan.scenario.dataset.rooms_sha256:
        return Unchecked("the plan names no rooms plan")
    if run.rooms is None:
        broken = [trouble for trouble in run.troubles if trouble.startswith("rooms.csv")]
        return f"{broken[0] if broken else 'rooms.csv is missing'}: first and later turns are those of conversations"
    if outside:
        return f"{outside} of {evidence.records.n} requests belong to conversations that the rooms plan does not know"
    return None


def ttft_missing(evidence: Evidence) -> Finding:
    plan, completed, known = evidence.run.plan, evidence.completed, evidence.ttft_ms.all.n
    if plan is not None and not plan.scenario.streaming:
        return Unchecked("the scenario does not stream")
    if not completed:
        return NO_RECORDS
    if known < TTFT_LIMIT * completed:
        return f"{completed - known} of {completed} completed requests have no TTFT"
    return None


def join_incomplete(evidence: Evidence) -> Finding:
    share = evidence.joined_share
    if share is None:
        return _NO_TRACE
    twice = _twice(evidence)
    if twice:
        return f"{twice} requests are in the request trace more than once"
    return f"{share:.1%} of the completed requests are in the request trace" if share < JOIN_LIMIT else None


def _twice(evidence: Evidence) -> int:
    """Requests of this point that the trace holds several times: each is its own history then."""
    own = set(evidence.records.request_id)
    seen = Counter(one.request_id for one in evidence.run.trace.requests if one.request_id in own)
    return sum(count > 1 for name, count in seen.items() if name)


def summary_disagrees(evidence: Evidence) -> Finding:
    """Our percentiles are computed as aiperf computes them: a difference means other requests."""
    summary = evidence.point.artifacts.summary
    theirs = summary.time_to_first_token if summary else None
    if theirs is None:
        return Unchecked("aiperf's summary has no TTFT")
    ours = evidence.ttft_ms.all
    for name in ("p50", "p90", "p95", "p99"):
        own, other = getattr(ours, name), getattr(theirs, name)
        if own is None or other is None:
            continue
        if abs(own - other) > max(SUMMARY_TOLERANCE_MS, SUMMARY_TOLERANCE * other):
            return f"TTFT {name} is {own:.2f} ms from the records, but {other:.2f} ms in aiperf's summary"
    return None


def client_behind(evidence: Evidence) -> Finding:
    """A client that is slow to send keeps fewer requests in flight than it was told to."""
    delay = evidence.credit_delay_ms
    latency = evidence.records.latency_ms[evidence.records.completed]
    if not len(delay) or np.isnan(latency).all():
        return Unchecked("the records have no credit times")
    waiting, served = float(np.median(delay)), float(np.nanmedian(latency))
    if waiting > CLIENT_SHARE_LIMIT * served:
        return (
            f"requests waited {waiting:.1f} ms in the client (median) before they were sent, and took {served:.1f} ms"
        )
    return None

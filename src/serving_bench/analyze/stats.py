"""Distributions of latencies: when a percentile may be given, and its interval."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from serving_bench.analyze.arrays import Bools, Floats, Ints
from serving_bench.analyze.bootstrap import Weights, percentile_interval
from serving_bench.analyze.turns import Turns
from serving_bench.report_contract import ByTurn, Distribution

SMALLEST_N = {50: 2, 90: 10, 95: 20, 99: 100}
"""Percentile → smallest n from which it is given: 1 ÷ (1 - q). Below it would be the maximum."""

ENOUGH_BEYOND = 10
"""Samples beyond a percentile from which on it carries no mark."""

_INTERVALS = (50, 95)


@dataclass
class Notes:
    """Reasons for what is null, under the dotted path of the field in a point."""

    reasons: dict[str, str] = field(default_factory=dict)

    def add(self, path: str, reason: str) -> None:
        self.reasons[path] = reason


@dataclass(frozen=True)
class Values:
    """A latency per request and the room of each; NaN where the request has none."""

    ms: Floats
    room: Ints

    def where(self, mask: Bools) -> Values:
        """The requests of the mask that have a value."""
        keep = mask & ~np.isnan(self.ms)
        return Values(self.ms[keep], self.room[keep])


def percentile(values: Floats, q: int) -> float | None:
    """Linear interpolation (numpy's default); null below the smallest n for which it says something."""
    if len(values) < SMALLEST_N[q]:
        return None
    return float(np.percentile(values, q))


def beyond(n: int, q: int) -> int:
    """Whole samples that lie beyond percentile q of n."""
    return math.floor(n * (100 - q) / 100)


def distribution(values: Values, weights: Weights, notes: Notes, path: str) -> Distribution:
    """Describe the values; ``weights`` are the room resamples for the intervals."""
    n = len(values.ms)
    if n == 0:
        notes.add(path, "no such requests (n = 0)")
        return Distribution(n=0)
    given = {q: percentile(values.ms, q) for q in SMALLEST_N}
    for q, value in given.items():
        if value is None:
            notes.add(f"{path}.p{q}", f"needs at least {SMALLEST_N[q]} requests, found {n}")
    intervals = {q: _interval(values, weights, q, notes, path) for q in _INTERVALS if given[q] is not None}
    return Distribution(
        n=n,
        mean=float(values.ms.mean()),
        p50=given[50],
        p90=given[90],
        p95=given[95],
        p99=given[99],
        max=float(values.ms.max()),
        p50_ci=intervals.get(50),
        p95_ci=intervals.get(95),
        marks=tuple(f"p{q}" for q, value in given.items() if value is not None and beyond(n, q) < ENOUGH_BEYOND),
    )


def _interval(values: Values, weights: Weights, q: int, notes: Notes, path: str) -> tuple[float, float] | None:
    found = percentile_interval(values.ms, values.room, weights, q / 100)
    if found is None:
        notes.add(f"{path}.p{q}_ci", "an interval needs requests of at least two rooms")
    return found


def by_turn(ms: Floats, completed: Bools, turns: Turns, weights: Weights, notes: Notes) -> ByTurn:
    """TTFT over all, first and later turns of completed requests."""
    values = Values(ms, turns.room)
    return ByTurn(
        all=distribution(values.where(completed), weights, notes, "ttft_ms.all"),
        first=distribution(values.where(completed & turns.first), weights, notes, "ttft_ms.first"),
        later=distribution(values.where(completed & turns.later), weights, notes, "ttft_ms.later"),
    )

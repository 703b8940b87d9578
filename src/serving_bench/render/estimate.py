"""How long a plan may take, and how long it will about take: pure.

The deadline is what the plan's own timeouts allow; the estimate is what people
pay for. The estimate knows the length of a load that has a duration; what it
does not know it assumes, and ``ASSUMPTIONS`` says what.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from serving_bench.contracts import CacheState, Mode, Plan

SETUP_MINUTES = 15
"""Room for checkout, installation and upload beside what the plan's deadlines allow."""

START_S = 600.0
"""Assumed time for a start of engines and router, where the deadline for it is not shorter."""

ASSUMPTIONS = (
    f"{START_S / 60:g} minutes a start, or ready-s where that is shorter; a load or warm-up without a duration, "
    "and an accuracy benchmark, counted at point-s"
)


def load_points(plan: Plan) -> int:
    """Concurrencies times repeats that the plan measures."""
    return 0 if plan.mode is Mode.EVALS else len(plan.conc) * plan.repeats


def eval_points(plan: Plan) -> int:
    """Accuracy benchmarks that the plan runs."""
    return 0 if plan.mode is Mode.PERFORMANCE else len(plan.evals)


def points(plan: Plan) -> int:
    return load_points(plan) + eval_points(plan)


def _starts(plan: Plan) -> int:
    """Engines and router are started anew for each point, unless the cache is carried on."""
    return min(points(plan), 1) if plan.cache is CacheState.CARRY else points(plan)


def deadline_minutes(plan: Plan) -> int:
    """Minutes after which the plan's own deadlines must have ended it, plus set-up."""
    seconds = points(plan) * plan.timeouts.point_s
    seconds += _starts(plan) * (plan.timeouts.ready_s + plan.timeouts.stop_s)
    return math.ceil(seconds / 60) + SETUP_MINUTES


def _load_s(plan: Plan) -> float:
    """Assumed seconds of one load point."""
    load, warmup = plan.scenario.load.duration_s, plan.scenario.warmup
    if load is None:
        return plan.timeouts.point_s
    return min(load + (warmup.duration_s or 0), plan.timeouts.point_s)


def minutes(plan: Plan) -> float:
    """Minutes that the plan will about take on its cluster."""
    seconds = _starts(plan) * min(plan.timeouts.ready_s, START_S)
    seconds += load_points(plan) * _load_s(plan) + eval_points(plan) * plan.timeouts.point_s
    return seconds / 60


def gpu_minutes(plan: Plan) -> float:
    """Minutes times GPUs of all replicas; 0 for engines that use none."""
    return minutes(plan) * plan.gpus * plan.replicas


@dataclass(frozen=True)
class Estimate:
    """Sum over several plans; GPU-minutes are rounded up."""

    points: int
    gpu_minutes: int


def estimate(plans: Iterable[Plan]) -> Estimate:
    chosen = tuple(plans)
    return Estimate(sum(map(points, chosen)), math.ceil(sum(map(gpu_minutes, chosen))))

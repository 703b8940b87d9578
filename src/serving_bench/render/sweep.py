"""A sweep decision applied to plans: pure."""

from __future__ import annotations

from collections.abc import Sequence

from serving_bench.contracts import (
    LoadSpec,
    Mode,
    Plan,
    WarmupSpec,
    comparability_hash,
    workload_hash,
)
from serving_bench.render.labels import FAST_DURATION_S, FAST_LABEL

_ROOM_S = 600.0
"""Beside the measured phase, for the warm-up and the load generator's own start and end."""


def with_mode(plans: Sequence[Plan], mode: Mode) -> tuple[tuple[Plan, ...], tuple[str, ...]]:
    """Plans with what is to be measured, and the configs that have no such points and fall out."""
    kept: list[Plan] = []
    without: dict[str, None] = {}
    for plan in plans:
        if plan.evals or mode is Mode.PERFORMANCE:
            kept.append(plan.model_copy(update={"mode": mode}))
        elif mode is Mode.EVALS:
            without[plan.config] = None
        else:
            kept.append(plan)
    return tuple(kept), tuple(without)


def fast(plan: Plan) -> Plan:
    """One warm-up request per lane, then a phase of fixed length, all of it recorded.

    A plan of several concurrencies, which only a carried cache brings together,
    gets the largest.
    """
    requests = max(plan.conc)
    timeouts = plan.timeouts
    if timeouts.point_s < FAST_DURATION_S + _ROOM_S:
        timeouts = timeouts.model_copy(update={"point_s": FAST_DURATION_S + _ROOM_S})
    scenario = plan.scenario.model_copy(
        update={"warmup": WarmupSpec(requests=requests), "load": LoadSpec(duration_s=FAST_DURATION_S)}
    )
    workload = workload_hash(scenario)
    recorded = {"label": FAST_LABEL, "warmup-requests": str(requests), "duration": f"{FAST_DURATION_S:g}"}
    if timeouts != plan.timeouts:
        recorded["timeouts.point-s"] = f"{timeouts.point_s:g}"
    return plan.model_copy(
        update={
            "scenario": scenario,
            "timeouts": timeouts,
            "overrides": {**plan.overrides, **recorded},
            "workload": workload,
            "comparability": comparability_hash(workload, plan.cluster, plan.model, plan.gpus * plan.replicas),
        }
    )

"""Plans to matrix rows: pure.

A row is small, since GitHub limits a job's outputs: it names the plan's file,
which travels as an artifact or is rendered again in the job.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from serving_bench.contracts import LoadSpec, Plan

SETUP_MINUTES = 15
"""Room for checkout, installation and upload beside what the plan's deadlines allow."""


def plan_name(plan: Plan) -> str:
    """Id of the plan's row and stem of its file: ``<config>--<cluster>``."""
    return f"{plan.config}--{plan.cluster.name}"


def conc_text(conc: Sequence[int]) -> str:
    return ",".join(str(value) for value in conc)


def timeout_minutes(plan: Plan) -> int:
    """Minutes after which the plan's own deadlines must have ended it, plus set-up."""
    point = plan.timeouts.ready_s + plan.timeouts.point_s + plan.timeouts.stop_s
    return math.ceil(len(plan.conc) * plan.repeats * point / 60) + SETUP_MINUTES


def row(plan: Plan) -> dict[str, Any]:
    """The matrix row of a plan."""
    return {
        "id": plan_name(plan),
        "config": plan.config,
        "cluster": plan.cluster.name,
        "runs-on": list(plan.cluster.runs_on),
        "conc": conc_text(plan.conc),
        "plan": f"{plan_name(plan)}.json",
        "canary": False,
        "timeout-minutes": timeout_minutes(plan),
    }


def matrix(plans: Sequence[Plan]) -> dict[str, Any]:
    """GitHub's ``strategy.matrix`` with a row per plan, in the order of their ids."""
    return {"include": sorted((row(plan) for plan in plans), key=lambda entry: str(entry["id"]))}


def load_text(load: LoadSpec) -> str:
    """Length of the profiling phase, as people say it: ``1200s``, ``56 conversations``."""
    parts = []
    if load.duration_s is not None:
        parts.append(f"{load.duration_s:g}s")
    if load.conversations is not None:
        parts.append(f"{load.conversations} conversations")
    if load.requests is not None:
        parts.append(f"{load.requests} requests")
    return ", ".join(parts)


def check_line(plan: Plan) -> str:
    """What ``render --check`` prints for a plan."""
    scenario = plan.scenario
    length = load_text(scenario.load)
    return f"{plan.config} {scenario.dataset.id} ({length}) c{conc_text(plan.conc)} cluster:{plan.cluster.name}"

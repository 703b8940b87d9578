"""Rows to what GitHub reads: the job matrix, or several of them, within its limits. Pure.

A row is small, since GitHub limits a job's outputs: it names the plan's file,
which travels as an artifact.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from serving_bench.contracts import LoadSpec, Plan
from serving_bench.errors import InputError
from serving_bench.render.estimate import estimate
from serving_bench.render.rows import Row, Rows, cluster_limits

MAX_ROWS = 256
"""Jobs that GitHub makes of one matrix."""
MAX_CHUNKS = 256
MANY_JOBS = 500
"""Above it the page of a workflow run is hardly usable."""
OUTPUTS_BYTES = 900 * 1024
"""For all outputs together, in UTF-16, which GitHub counts: below its 1 MiB, so that a job has room for more."""


def conc_text(conc: Sequence[int]) -> str:
    return ",".join(str(value) for value in conc)


def row_json(row: Row) -> dict[str, Any]:
    """A row as it stands in the matrix."""
    return {
        "id": row.id,
        "config": row.plan.config,
        "cluster": row.plan.cluster.name,
        "runs-on": list(row.plan.cluster.runs_on),
        "conc": conc_text(row.plan.conc),
        "mode": row.plan.mode.value,
        "plan": f"{row.id}.json",
        "canary": row.canary,
        "timeout-minutes": row.timeout_minutes,
    }


def matrix(rows: Sequence[Row]) -> dict[str, Any]:
    """GitHub's ``strategy.matrix`` with exactly these rows."""
    return {"include": [row_json(row) for row in rows]}


def compact(value: Any) -> str:
    """JSON as an output holds it: one line of ASCII."""
    return json.dumps(value, separators=(",", ":"), allow_nan=False)


def utf16_bytes(text: str) -> int:
    return len(text.encode("utf-16-le", "surrogatepass"))


@dataclass(frozen=True)
class Outputs:
    """The step's outputs by name, and what there is to say about them."""

    values: Mapping[str, str]
    warnings: tuple[tuple[str, str], ...] = ()
    """(code, message) of each."""


def outputs(made: Rows, *, fail_fast: bool = False, extra: Mapping[str, str] | None = None) -> Outputs:
    """All outputs, or ``InputError`` (SB-MATRIX-ROWS, SB-MATRIX-SIZE) where GitHub would not take them.

    Either ``matrix`` holds the rows (and ``chunks`` none), or ``chunks`` does,
    a list of matrices that differ in length by one at most.
    """
    chunks = _chunks(made.rows)
    limit = _strictest(made.rows)
    values = {
        "matrix": compact(matrix(() if chunks else made.rows)),
        "chunks": compact([matrix(chunk) for chunk in chunks]),
        "count": str(len(made.all())),
        "canary": compact(matrix([made.canary])) if made.canary else "",
        "fail-fast": compact(fail_fast),
        "max-parallel": str(limit or MAX_ROWS),
        "chunks-max-parallel": str(1 if limit else MAX_CHUNKS),
        "estimate": str(estimate(row.plan for row in made.all()).gpu_minutes),
        **(extra or {}),
    }
    _refuse_large(values, len(made.all()))
    return Outputs(values, tuple(_warnings(made)))


def _chunks(rows: Sequence[Row]) -> list[Sequence[Row]]:
    """The rows in lists of nearly equal length, each a matrix; none where one matrix holds them all."""
    if len(rows) <= MAX_ROWS:
        return []
    count = math.ceil(len(rows) / MAX_ROWS)
    if count > MAX_CHUNKS:
        raise InputError(
            f"{len(rows)} rows, GitHub takes at most {MAX_CHUNKS} matrices of {MAX_ROWS} rows",
            code="SB-MATRIX-ROWS",
            hint="name fewer configs, or fewer concurrencies with --conc",
        )
    edges = [len(rows) * index // count for index in range(count + 1)]
    return [rows[start:end] for start, end in pairwise(edges)]


def _strictest(rows: Sequence[Row]) -> int | None:
    """GitHub knows one ``max-parallel`` a matrix: the least of the clusters' keeps every cluster's."""
    return min((limit for limit in cluster_limits(rows).values() if limit is not None), default=None)


def _refuse_large(values: Mapping[str, str], count: int) -> None:
    size = sum(utf16_bytes(name) + utf16_bytes(value) for name, value in values.items())
    if size > OUTPUTS_BYTES:
        raise InputError(
            f"the outputs for {count} rows take {math.ceil(size / 1024)} KiB in UTF-16, "
            f"of GitHub's 1024 KiB a job they may take {OUTPUTS_BYTES // 1024}",
            code="SB-MATRIX-SIZE",
            hint="name fewer configs, or fewer concurrencies with --conc",
        )


def _warnings(made: Rows) -> list[tuple[str, str]]:
    rows = made.all()
    found = []
    if len(rows) > MANY_JOBS:
        text = f"{len(rows)} jobs: above {MANY_JOBS} the page of the workflow run is hardly usable"
        found.append(("SB-MATRIX-MANY", text))
    limits = set(cluster_limits(made.rows).values())
    if len(limits) > 1:
        text = "the clusters differ in max-parallel; GitHub knows one for a matrix, so the least counts for all"
        found.append(("SB-MATRIX-PARALLEL", text))
    found += [
        (
            "SB-ROW-TIME",
            f"{row.id}: its deadlines add up to more than the {row.timeout_minutes} minutes that GitHub allows a job",
        )
        for row in rows
        if row.cut
    ]
    return found


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

"""Plans to rows: which points of which plan are one job. Pure.

A row holds the plan that its job runs: the config's plan, narrowed to the
row's concurrencies. Usually that is all of them. It is fewer where the plan's
deadlines do not fit into one job, where the caller asks for fewer, and where
one is set apart as the canary. Repeats of a concurrency stay together, and a
plan whose cache is carried from point to point is never divided.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest

from serving_bench.contracts import CacheState, Mode, Plan
from serving_bench.errors import InputError
from serving_bench.files import sha256
from serving_bench.render.estimate import deadline_minutes, gpu_minutes, minutes

HOSTED_MINUTES = 6 * 60
SELF_HOSTED_MINUTES = 5 * 24 * 60
"""What GitHub allows a job on its own runners, and on those of others."""

_HOSTED = re.compile(r"(ubuntu|windows|macos)-[\w.-]+\Z")
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]")
_MAX_NAME = 180
"""With its suffixes still a file's name, and an artifact's."""

Fit = Callable[[Plan], Plan]
"""What makes a plan right for the concurrencies that it was narrowed to."""


@dataclass(frozen=True)
class Row:
    """A job of the matrix; ``plan`` is what it runs."""

    id: str
    plan: Plan
    canary: bool = False

    @property
    def timeout_minutes(self) -> int:
        return min(deadline_minutes(self.plan), job_limit_minutes(self.plan))

    @property
    def cut(self) -> bool:
        """Whether the plan's deadlines reach beyond what GitHub allows the job."""
        return deadline_minutes(self.plan) > job_limit_minutes(self.plan)


@dataclass(frozen=True)
class Rows:
    """All rows; the canary stands apart, since the others wait for it."""

    rows: tuple[Row, ...] = ()
    canary: Row | None = None

    def all(self) -> tuple[Row, ...]:
        return (*((self.canary,) if self.canary else ()), *self.rows)


def job_limit_minutes(plan: Plan) -> int:
    """GitHub's own runners are known by the form of their labels; any other label is taken for a self-hosted one."""
    hosted = "self-hosted" not in plan.cluster.runs_on and any(map(_HOSTED.match, plan.cluster.runs_on))
    return HOSTED_MINUTES if hosted else SELF_HOSTED_MINUTES


def build(
    plans: Sequence[Plan], *, split: int | None = None, canary: bool = False, fit: Fit = lambda plan: plan
) -> Rows:
    """All rows of the plans; ``split`` is the largest number of concurrencies in a row.

    Raises ``InputError`` (SB-CONFIG-TWICE) where two files make the same plan.
    """
    _refuse_twins(plans)
    apart = _cheapest(plans, fit) if canary else None
    parts: list[tuple[Plan, Plan, bool]] = []
    for plan in plans:
        first, rest = _set_apart(plan) if plan is apart else (None, plan)
        parts += [(plan, fit(first), True)] if first else []
        parts += [(plan, part, False) for part in _divided(rest, split, fit)] if rest else []
    rows = _named(parts)
    if len(rows) == 1:
        rows = [replace(rows[0], canary=False)]
    ahead = next((row for row in rows if row.canary), None)
    return Rows(tuple(spread(row for row in rows if row is not ahead)), ahead)


def _refuse_twins(plans: Iterable[Plan]) -> None:
    sources: dict[tuple[str, str], str] = {}
    for plan in plans:
        key = (plan.config, plan.cluster.name)
        if key in sources:
            raise InputError(
                f"{plan.source} and {sources[key]} both make {plan.config} on {plan.cluster.name}",
                code="SB-CONFIG-TWICE",
                hint="rename one of the files: a config's name is its file's name without .yaml",
            )
        sources[key] = plan.source


def _cheapest(plans: Iterable[Plan], fit: Fit) -> Plan | None:
    def cost(plan: Plan) -> tuple[float, float, str, str]:
        fitted = fit(plan)
        return gpu_minutes(fitted), minutes(fitted), plan.config, plan.cluster.name

    return min(plans, key=cost, default=None)


def _divisible(plan: Plan) -> bool:
    return len(plan.conc) > 1 and plan.cache is not CacheState.CARRY and plan.mode is not Mode.EVALS


def _set_apart(plan: Plan) -> tuple[Plan, Plan | None]:
    """The plan's lowest concurrency and the rest; the whole plan where it cannot be divided."""
    if not _divisible(plan):
        return plan, None
    low = min(plan.conc)
    rest = plan.model_copy(update={"conc": tuple(value for value in plan.conc if value != low)})
    return plan.model_copy(update={"conc": (low,), "mode": Mode.PERFORMANCE}), rest


def _divided(plan: Plan, split: int | None, fit: Fit) -> Iterator[Plan]:
    """The plan in as few parts as the limits allow; accuracy benchmarks go with the first."""
    left = plan
    while True:
        count = _fitting(left, split, fit)
        yield fit(left.model_copy(update={"conc": left.conc[:count]}))
        if count == len(left.conc):
            return
        left = left.model_copy(update={"conc": left.conc[count:], "mode": Mode.PERFORMANCE})


def _fitting(plan: Plan, split: int | None, fit: Fit) -> int:
    """How many of the plan's concurrencies, from the first on, are one row; at least one."""
    if not _divisible(plan):
        return len(plan.conc)
    most = min(len(plan.conc), split or len(plan.conc))
    limit = job_limit_minutes(plan)
    low, high = 1, most
    while low < high:  # the deadline grows with the number of concurrencies
        middle = (low + high + 1) // 2
        fits = deadline_minutes(fit(plan.model_copy(update={"conc": plan.conc[:middle]}))) <= limit
        low, high = (middle, high) if fits else (low, middle - 1)
    return low


def plan_name(plan: Plan) -> str:
    """``<config>--<cluster>`` as far as it can be the name of a file and of an artifact."""
    name = f"{plan.config}--{plan.cluster.name}"
    safe = _UNSAFE.sub("_", name)[:_MAX_NAME]
    return safe if safe == name else f"{safe}-{_mark(plan)}"


def _mark(plan: Plan, length: int = 8) -> str:
    return sha256(json.dumps([plan.config, plan.cluster.name], separators=(",", ":")).encode())[:length]


def _suffix(whole: Plan, part: Plan) -> str:
    """Concurrencies of a part, by the first and the last: the first alone is unique within a plan."""
    if len(part.conc) == len(whole.conc):
        return ""
    return f"--c{part.conc[0]}" if len(part.conc) == 1 else f"--c{part.conc[0]}-{part.conc[-1]}"


def _named(parts: Sequence[tuple[Plan, Plan, bool]]) -> list[Row]:
    """Rows with unique ids. Names may hold ``--`` themselves: whoever shares an id gets a mark of its own."""
    natural = [plan_name(whole) + _suffix(whole, part) for whole, part, _ in parts]
    ids, length = natural, 0
    while shared := {name for name, count in Counter(name.lower() for name in ids).items() if count > 1}:
        length += 8  # a name can be made to look like another one with its mark: then both get a longer one
        ids = [
            f"{plain}-{_mark(whole, length)}" if name.lower() in shared else name
            for name, plain, (whole, _, _) in zip(ids, natural, parts, strict=True)
        ]
    return [Row(name, part, canary) for name, (_, part, canary) in zip(ids, parts, strict=True)]


def spread(rows: Iterable[Row]) -> list[Row]:
    """A row of each cluster in turn, so that no cluster waits for another; in the order of their ids."""
    by_cluster: dict[str, list[Row]] = {}
    for row in sorted(rows, key=lambda row: (row.plan.cluster.name, row.id)):
        by_cluster.setdefault(row.plan.cluster.name, []).append(row)
    return [row for turn in zip_longest(*by_cluster.values()) for row in turn if row is not None]


def cluster_limits(rows: Iterable[Row]) -> Mapping[str, int | None]:
    """``max-parallel`` of each cluster among the rows."""
    return {row.plan.cluster.name: row.plan.cluster.max_parallel for row in rows}

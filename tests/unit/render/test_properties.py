"""What must hold of a matrix whatever the plans are."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Mapping
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from serving_bench.contracts import CacheState, Mode, Plan, Timeouts
from serving_bench.errors import InputError
from serving_bench.render.matrix import OUTPUTS_BYTES, outputs, utf16_bytes
from serving_bench.render.rows import Row, Rows, build
from serving_bench.render.sweep import fast, with_mode

from .conftest import plan_of

NAMES = st.one_of(
    st.sampled_from(["a", "A", "b", "a--b", "a--b--c1", "b--c1", "c1-2"]),
    st.text(st.characters(codec="utf-8", exclude_characters="/\0"), min_size=1, max_size=60),
)
CONC = st.lists(st.integers(1, 1_000_000), min_size=1, max_size=6, unique=True).map(tuple)
SECONDS = st.floats(1, 200_000)


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    return plan_of(
        draw(NAMES),
        draw(NAMES),
        runs_on=tuple(draw(st.lists(st.sampled_from(["ubuntu-latest", "self-hosted", "h200"]), min_size=1))),
        max_parallel=draw(st.none() | st.integers(1, 300)),
        duration_s=draw(st.none() | SECONDS),
        conc=draw(CONC),
        repeats=draw(st.integers(1, 3)),
        gpus=draw(st.integers(0, 8)),
        cache=draw(st.sampled_from(CacheState)),
        evals=tuple(draw(st.lists(st.sampled_from(["aime", "gsm8k"]), unique=True))),
        timeouts=Timeouts(ready_s=draw(SECONDS), point_s=draw(SECONDS), stop_s=draw(SECONDS)),
    )


SETS = st.lists(plans(), max_size=8, unique_by=lambda plan: (plan.config, plan.cluster.name))
FEW = settings(max_examples=60, deadline=None)
SPLIT = st.none() | st.integers(1, 7)

Point = tuple[str, str, str]
"""Config, cluster, and a concurrency with its repeat or a benchmark."""


def points_of(plan: Plan) -> Counter[Point]:
    """Spelled out apart from the code: what somebody who asks for this plan wants to see measured."""
    where = (plan.config, plan.cluster.name)
    found: Counter[Point] = Counter()
    if plan.mode in (Mode.PERFORMANCE, Mode.BOTH):
        found.update((*where, f"c{conc} run {repeat}") for conc in plan.conc for repeat in range(plan.repeats))
    if plan.mode in (Mode.EVALS, Mode.BOTH):
        found.update((*where, name) for name in plan.evals)
    return found


def points_in(rows: Rows) -> Counter[Point]:
    return sum((points_of(row.plan) for row in rows.all()), Counter())


@FEW
@given(SETS, st.sampled_from(Mode), SPLIT, st.booleans(), st.booleans())
def test_every_requested_point_is_in_exactly_one_row(
    chosen: list[Plan], mode: Mode, split: int | None, canary: bool, quick: bool
) -> None:
    wanted, _ = with_mode(chosen, mode)
    rows = build(wanted, split=split, canary=canary, fit=fast if quick else lambda plan: plan)
    assert points_in(rows) == sum((points_of(plan) for plan in wanted), Counter())
    assert all(count == 1 for count in points_in(rows).values())


@FEW
@given(SETS, st.randoms(use_true_random=False), SPLIT, st.booleans())
def test_rows_are_the_same_in_whatever_order_the_files_are_read(
    chosen: list[Plan], order: random.Random, split: int | None, canary: bool
) -> None:
    shuffled = list(chosen)
    order.shuffle(shuffled)
    assert build(shuffled, split=split, canary=canary) == build(chosen, split=split, canary=canary)


@FEW
@given(SETS, SPLIT, st.booleans())
def test_ids_are_unique_and_can_be_files_and_artifacts(chosen: list[Plan], split: int | None, canary: bool) -> None:
    ids = [row.id for row in build(chosen, split=split, canary=canary).all()]
    assert len({name.lower() for name in ids}) == len(ids)
    for name in ids:
        assert name.isascii()
        assert not set(name) & set('":<>|*?\r\n\\/ ')
        assert len(name) <= 230


@FEW
@given(SETS, SPLIT, st.booleans())
def test_at_most_one_canary_and_never_alone(chosen: list[Plan], split: int | None, canary: bool) -> None:
    rows = build(chosen, split=split, canary=canary)
    assert (rows.canary is not None) == (canary and len(rows.all()) > 1)
    assert not any(row.canary for row in rows.rows)
    assert bool(rows.rows) == bool(chosen)


@FEW
@given(SETS, SPLIT)
def test_jobs_get_no_more_time_than_github_gives(chosen: list[Plan], split: int | None) -> None:
    for row in build(chosen, split=split).rows:
        hosted = "self-hosted" not in row.plan.cluster.runs_on and "ubuntu-latest" in row.plan.cluster.runs_on
        assert 0 < row.timeout_minutes <= (360 if hosted else 7200)
        assert split is None or len(row.plan.conc) <= split or row.plan.cache is CacheState.CARRY


@FEW
@given(SETS)
def test_no_cluster_comes_twice_while_another_waits(chosen: list[Plan]) -> None:
    order = [row.plan.cluster.name for row in build(chosen).rows]
    for index, (name, following) in enumerate(pairwise(order)):
        assert name != following or set(order[index:]) == {name}


def accepted(rows: Rows, reason: str) -> Mapping[str, str] | None:
    """The outputs, or None where they are refused with a code."""
    try:
        return outputs(rows, extra={"reason": reason}).values
    except InputError as error:
        if error.code in ("SB-MATRIX-SIZE", "SB-MATRIX-ROWS"):
            return None
        raise


@given(
    plan=plans(),
    number=st.one_of(st.integers(0, 300), st.integers(400, 3000), st.just(256 * 256 + 1)),
    label=st.text(st.characters(codec="utf-8"), max_size=3000),
    reason=st.text(st.characters(), max_size=2000),
    canary=st.booleans(),
)
@FEW
def test_no_output_exceeds_the_limits_whatever_the_input(
    plan: Plan, number: int, label: str, reason: str, canary: bool
) -> None:
    cluster = plan.cluster.model_copy(update={"runs_on": (label,)})
    row = Row("x" * 100, plan.model_copy(update={"cluster": cluster}))
    rows = Rows((row,) * number, row if canary else None)
    values = accepted(rows, reason)
    if values is None:
        assert number > 256 or len(label) > 50, "few small rows always fit"
        return
    assert sum(utf16_bytes(name) + utf16_bytes(value) for name, value in values.items()) <= OUTPUTS_BYTES < 1024 * 1024
    matrices = [json.loads(values["matrix"]), *json.loads(values["chunks"])]
    assert all(len(matrix["include"]) <= 256 for matrix in matrices)
    assert len(matrices) <= 257
    assert sum(len(matrix["include"]) for matrix in matrices) == number
    assert values["count"] == str(number + canary)

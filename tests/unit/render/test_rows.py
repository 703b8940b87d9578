from __future__ import annotations

from dataclasses import replace

import pytest

from serving_bench.contracts import CacheState, Mode, Plan, Timeouts
from serving_bench.errors import InputError
from serving_bench.render.rows import Row, Rows, build, job_limit_minutes, plan_name, spread

from .conftest import MakePlan


def shown(rows: Rows) -> list[tuple[str, tuple[int, ...], bool]]:
    return [(row.id, row.plan.conc, row.canary) for row in rows.all()]


def test_a_row_is_a_plan(make_plan: MakePlan) -> None:
    plan = make_plan()
    assert build([plan]) == Rows((Row("x--node", plan),))


def test_the_canary_is_the_lowest_concurrency_of_the_cheapest_plan(make_plan: MakePlan) -> None:
    dear = make_plan("a", conc=(1, 2))
    cheap = make_plan("b", conc=(150, 96, 200), gpus=1)
    assert shown(build([dear, cheap], canary=True)) == [
        ("b--node--c96", (96,), True),
        ("a--node", (1, 2), False),
        ("b--node--c150-200", (150, 200), False),
    ]


def test_among_equals_the_canary_is_the_shortest_then_the_first_by_name(make_plan: MakePlan) -> None:
    plans = [make_plan(name, gpus=0, conc=(8, 9)) for name in "cab"]
    assert next(row.id for row in build(plans, canary=True).all()) == "a--node--c8"
    plans.append(make_plan("z", gpus=0, conc=(8,)))
    assert next(row.id for row in build(plans, canary=True).all()) == "z--node"


def test_a_canary_with_nothing_behind_it_is_an_ordinary_row(make_plan: MakePlan) -> None:
    rows = build([make_plan(conc=(4,))], canary=True)
    assert rows.canary is None
    assert shown(rows) == [("x--node", (4,), False)]
    assert build([], canary=True) == Rows()


def test_a_carried_cache_is_never_divided(make_plan: MakePlan) -> None:
    carried = make_plan("carry", cache=CacheState.CARRY)
    other = make_plan("other", gpus=8)
    rows = build([carried, other], split=1, canary=True)
    assert shown(rows) == [
        ("carry--node", (96, 150), True),
        ("other--node--c150", (150,), False),
        ("other--node--c96", (96,), False),
    ]


def test_rows_are_divided_where_the_caller_asks(make_plan: MakePlan) -> None:
    rows = build([make_plan(conc=(1, 2, 3, 4, 5))], split=2)
    assert shown(rows) == [
        ("x--node--c1-2", (1, 2), False),
        ("x--node--c3-4", (3, 4), False),
        ("x--node--c5", (5,), False),
    ]


def test_rows_are_divided_where_github_would_end_the_job(make_plan: MakePlan) -> None:
    # A point may take 91 minutes; three and the set-up are 288, four 379, and a hosted runner has 360.
    hosted = make_plan(runs_on=("ubuntu-24.04",), conc=(1, 2, 3, 4))
    rows = build([hosted])
    assert [row.plan.conc for row in rows.rows] == [(1, 2, 3), (4,)]
    assert [row.timeout_minutes for row in rows.rows] == [288, 106]
    assert len(build([make_plan(conc=(1, 2, 3, 4))]).rows) == 1


def test_a_point_that_cannot_fit_is_cut_and_known_for_it(make_plan: MakePlan) -> None:
    (row,) = build([make_plan(runs_on=("ubuntu-latest",), conc=(1,), timeouts=Timeouts(point_s=7 * 3600))]).rows
    assert row.cut
    assert row.timeout_minutes == 360


@pytest.mark.parametrize(
    ("labels", "limit"),
    [
        (("ubuntu-latest",), 360),
        (("windows-2025",), 360),
        (("self-hosted", "ubuntu-22.04"), 7200),
        (("h200-node",), 7200),
        (("ubuntu",), 7200),
    ],
)
def test_which_runners_are_githubs_own(make_plan: MakePlan, labels: tuple[str, ...], limit: int) -> None:
    assert job_limit_minutes(make_plan(runs_on=labels)) == limit


def test_accuracy_goes_with_one_row_only(make_plan: MakePlan) -> None:
    plan = make_plan(evals=("aime",), mode=Mode.BOTH, conc=(1, 2, 3))
    rows = build([plan, make_plan("y", gpus=64)], split=1, canary=True)
    modes = {row.id: row.plan.mode for row in rows.all() if row.plan.config == "x"}
    assert modes == {"x--node--c1": "performance", "x--node--c2": "both", "x--node--c3": "performance"}


def test_accuracy_only_is_one_row(make_plan: MakePlan) -> None:
    plan = make_plan(evals=("aime",), mode=Mode.EVALS, conc=(1, 2, 3))
    assert shown(build([plan], split=1)) == [("x--node", (1, 2, 3), False)]


def test_what_makes_a_plan_right_sees_every_part(make_plan: MakePlan) -> None:
    def fit(plan: Plan) -> Plan:
        return plan.model_copy(update={"description": f"largest {max(plan.conc)}"})

    rows = build([make_plan(), make_plan("y", gpus=8)], split=1, canary=True, fit=fit)
    assert {row.plan.description for row in rows.all()} == {"largest 96", "largest 150"}
    assert all(row.plan.description == f"largest {row.plan.conc[0]}" for row in rows.all())


def test_two_files_of_one_name_are_refused(make_plan: MakePlan) -> None:
    with pytest.raises(InputError, match=r"other/x\.yaml and configs/serving/x\.yaml both make x on node") as caught:
        build([make_plan(), make_plan(source="other/x.yaml")])
    assert caught.value.code == "SB-CONFIG-TWICE"


def test_names_that_run_together_are_told_apart(make_plan: MakePlan) -> None:
    plans = [make_plan("a--b", "c"), make_plan("a", "b--c")]
    ids = [row.id for row in build(plans).rows]
    assert len(set(ids)) == 2
    assert all(name.startswith("a--b--c-") for name in ids)
    assert sorted(ids) == sorted(row.id for row in build(plans[::-1]).rows)


def test_names_that_differ_in_case_only_are_told_apart(make_plan: MakePlan) -> None:
    ids = [row.id.lower() for row in build([make_plan("a"), make_plan("A")]).rows]
    assert len(set(ids)) == 2


def test_a_name_that_can_be_no_file_or_artifact(make_plan: MakePlan) -> None:
    name = plan_name(make_plan('we:ird/ "name"\n' + "n" * 300))
    assert name.startswith("we_ird___name__nnn")
    assert len(name) == 189


def test_clusters_take_turns(make_plan: MakePlan) -> None:
    plans = [make_plan(name, cluster) for cluster in ("p", "q") for name in ("a", "b", "c")]
    plans.append(make_plan("a", "r"))
    order = [row.id for row in build(plans[::-1]).rows]
    assert order == ["a--p", "a--q", "a--r", "b--p", "b--q", "c--p", "c--q"]
    assert [row.id for row in spread(build(plans).rows)] == order


def test_the_canary_knows_that_it_is_one(make_plan: MakePlan) -> None:
    rows = build([make_plan("a"), make_plan("b")], canary=True)
    assert rows.canary is not None
    assert rows.canary == replace(rows.canary, canary=True)
    assert not any(row.canary for row in rows.rows)


def test_a_name_made_to_look_like_another_with_its_mark_gets_an_id_of_its_own(make_plan: MakePlan) -> None:
    twins = [make_plan("a--b", "c"), make_plan("a", "b--c")]
    marked = {row.plan.config: row.id for row in build(twins).all()}
    assert all(name.startswith("a--b--c-") for name in marked.values())
    forged = make_plan("a--b", "c" + marked["a"].removeprefix("a--b--c"))
    ids = [row.id for row in build([*twins, forged]).all()]
    assert len(set(ids)) == 3
    assert sorted(ids) == sorted(row.id for row in build([forged, *reversed(twins)]).all())

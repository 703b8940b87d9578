from __future__ import annotations

import json

import pytest

from serving_bench.config.loader import load
from serving_bench.contracts import LoadSpec, Plan
from serving_bench.errors import InputError
from serving_bench.render.matrix import Outputs, check_line, load_text, matrix, outputs, utf16_bytes
from serving_bench.render.rows import Rows, build

from .conftest import DEMO, ROOT, MakePlan


@pytest.fixture
def demo() -> Plan:
    (plan,) = load(ROOT / "configs", [DEMO]).plans
    return plan


def made(plans: list[Plan], *, canary: bool = False, fail_fast: bool = False) -> Outputs:
    return outputs(build(plans, canary=canary), fail_fast=fail_fast)


def test_the_row_of_the_demo(demo: Plan) -> None:
    # Two points, each within 120 s to get ready, 300 s of load and 20 s to stop: 880 s, and 15 minutes of set-up.
    assert matrix(build([demo]).rows) == {
        "include": [
            {
                "id": "demo-2rep-dyn-mocker-kv--hosted-mocker",
                "config": "demo-2rep-dyn-mocker-kv",
                "cluster": "hosted-mocker",
                "runs-on": ["ubuntu-latest"],
                "conc": "4,8",
                "mode": "performance",
                "plan": "demo-2rep-dyn-mocker-kv--hosted-mocker.json",
                "canary": False,
                "timeout-minutes": 30,
            }
        ]
    }


def test_the_outputs_of_two_plans_with_a_canary(make_plan: MakePlan) -> None:
    values = made([make_plan("a", gpus=1), make_plan("b")], canary=True, fail_fast=True).values
    assert [row["id"] for row in json.loads(values["matrix"])["include"]] == ["a--node--c150", "b--node"]
    (canary,) = json.loads(values["canary"])["include"]
    assert (canary["id"], canary["conc"], canary["canary"]) == ("a--node--c96", "96", True)
    # 60 minutes on 1 GPU and 60 on 4.
    assert {name: values[name] for name in values if name not in ("matrix", "canary")} == {
        "chunks": "[]",
        "count": "3",
        "fail-fast": "true",
        "max-parallel": "256",
        "chunks-max-parallel": "256",
        "estimate": "300",
    }


def test_nothing_to_run() -> None:
    values = outputs(Rows()).values
    assert (values["matrix"], values["chunks"], values["canary"]) == ('{"include":[]}', "[]", "")
    assert (values["count"], values["estimate"]) == ("0", "0")


@pytest.mark.parametrize(("number", "lengths"), [(256, []), (257, [128, 129]), (600, [200, 200, 200])])
def test_more_rows_than_a_matrix_holds_become_chunks(make_plan: MakePlan, number: int, lengths: list[int]) -> None:
    plans = [make_plan(f"c{index:04}") for index in range(number)]
    values = made(plans).values
    chunks = json.loads(values["chunks"])
    assert [len(chunk["include"]) for chunk in chunks] == lengths
    rows = [row["id"] for part in (json.loads(values["matrix"]), *chunks) for row in part["include"]]
    assert rows == [f"c{index:04}--node" for index in range(number)]


def test_many_jobs_are_warned_about(make_plan: MakePlan) -> None:
    plans = [make_plan(f"c{index:04}") for index in range(501)]
    assert made(plans[:500]).warnings == ()
    ((code, message),) = made(plans).warnings
    assert code == "SB-MATRIX-MANY"
    assert message.startswith("501 jobs")


def test_outputs_that_github_would_refuse_are_an_error(make_plan: MakePlan) -> None:
    plans = [make_plan(f"{'n' * 90}{index:05}") for index in range(1200)]
    with pytest.raises(InputError) as caught:
        made(plans)
    assert caught.value.code == "SB-MATRIX-SIZE"


def test_more_rows_than_all_matrices_hold_are_an_error(make_plan: MakePlan) -> None:
    (row,) = build([make_plan()]).rows
    with pytest.raises(InputError) as caught:
        outputs(Rows((row,) * (256 * 256 + 1)))
    assert caught.value.code == "SB-MATRIX-ROWS"


def test_size_is_counted_in_utf16() -> None:
    assert (utf16_bytes("ab"), utf16_bytes("é"), utf16_bytes("😀"), utf16_bytes("\ud800")) == (4, 2, 4, 2)


def test_one_max_parallel_for_clusters_that_agree(make_plan: MakePlan) -> None:
    found = made([make_plan("a", "p", max_parallel=3), make_plan("b", "q", max_parallel=3)])
    assert (found.values["max-parallel"], found.values["chunks-max-parallel"]) == ("3", "1")
    assert found.warnings == ()


def test_the_least_max_parallel_counts_and_says_so(make_plan: MakePlan) -> None:
    found = made([make_plan("a", "p", max_parallel=3), make_plan("b", "q", max_parallel=2), make_plan("c", "r")])
    assert found.values["max-parallel"] == "2"
    assert [code for code, _ in found.warnings] == ["SB-MATRIX-PARALLEL"]


def test_a_row_that_github_ends_before_its_deadlines_is_warned_about(make_plan: MakePlan) -> None:
    found = made([make_plan(runs_on=("ubuntu-latest",), conc=(1,), repeats=10)])
    ((code, message),) = found.warnings
    assert code == "SB-ROW-TIME"
    assert message.startswith("x--node: ")
    assert "360 minutes" in message


def test_the_line_of_a_check(demo: Plan) -> None:
    assert check_line(demo) == (
        "demo-2rep-dyn-mocker-kv voice-agent-demo (54 conversations) c4,8 cluster:hosted-mocker"
    )


def test_length_of_a_load() -> None:
    assert load_text(LoadSpec(duration_s=1200)) == "1200s"
    assert load_text(LoadSpec(requests=10, duration_s=0.5)) == "0.5s, 10 requests"

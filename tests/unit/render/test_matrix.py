from __future__ import annotations

from pathlib import Path

import pytest

from serving_bench.config.loader import load
from serving_bench.contracts import LoadSpec, Plan
from serving_bench.render.matrix import check_line, load_text, matrix

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def plan() -> Plan:
    (plan,) = load(ROOT / "configs", ["demo-2rep-dyn-mocker-kv"]).plans
    return plan


def test_the_row_of_the_demo(plan: Plan) -> None:
    # Two points, each within 120 s to get ready, 300 s of load and 20 s to stop: 880 s, and 15 minutes of set-up.
    assert matrix([plan]) == {
        "include": [
            {
                "id": "demo-2rep-dyn-mocker-kv--hosted-mocker",
                "config": "demo-2rep-dyn-mocker-kv",
                "cluster": "hosted-mocker",
                "runs-on": ["ubuntu-latest"],
                "conc": "4,8",
                "plan": "demo-2rep-dyn-mocker-kv--hosted-mocker.json",
                "canary": False,
                "timeout-minutes": 30,
            }
        ]
    }


def test_rows_do_not_depend_on_the_order_of_plans(plan: Plan) -> None:
    other = plan.model_copy(update={"config": "a"})
    assert matrix([plan, other]) == matrix([other, plan])


def test_the_line_of_a_check(plan: Plan) -> None:
    assert check_line(plan) == (
        "demo-2rep-dyn-mocker-kv voice-agent-demo (54 conversations) c4,8 cluster:hosted-mocker"
    )


def test_length_of_a_load() -> None:
    assert load_text(LoadSpec(duration_s=1200)) == "1200s"
    assert load_text(LoadSpec(requests=10, duration_s=0.5)) == "0.5s, 10 requests"

from __future__ import annotations

import pytest

from serving_bench.contracts import CacheState, Mode, Timeouts, WarmupSpec
from serving_bench.render.estimate import Estimate, deadline_minutes, estimate, gpu_minutes, minutes, points

from .conftest import MakePlan


def test_deadlines_and_set_up(make_plan: MakePlan) -> None:
    # Two points of 1800 + 3600 + 60 s are 182 minutes.
    assert deadline_minutes(make_plan()) == 182 + 15
    # A carried cache starts and stops once: 1860 + 2 * 3600 s are 151 minutes.
    assert deadline_minutes(make_plan(cache=CacheState.CARRY)) == 151 + 15


def test_minutes_of_a_load_with_a_duration(make_plan: MakePlan) -> None:
    # Each point starts anew: 10 + 20 minutes.
    assert minutes(make_plan()) == 60
    assert gpu_minutes(make_plan(replicas=2)) == 60 * 8
    assert minutes(make_plan(repeats=3)) == 180
    assert minutes(make_plan(cache=CacheState.CARRY)) == 50
    assert minutes(make_plan(timeouts=Timeouts(ready_s=60))) == 42


def test_what_is_not_known_counts_as_its_deadline(make_plan: MakePlan) -> None:
    assert minutes(make_plan(duration_s=None)) == 2 * (10 + 60)
    assert minutes(make_plan(timeouts=Timeouts(point_s=600))) == 2 * (10 + 10)


def test_a_warm_up_with_a_duration_counts(make_plan: MakePlan) -> None:
    plan = make_plan()
    warm = plan.scenario.model_copy(update={"warmup": WarmupSpec(duration_s=300)})
    assert minutes(plan.model_copy(update={"scenario": warm})) == 2 * (10 + 20 + 5)


@pytest.mark.parametrize(("mode", "number"), [(Mode.PERFORMANCE, 2), (Mode.EVALS, 3), (Mode.BOTH, 5)])
def test_points_by_mode(make_plan: MakePlan, mode: Mode, number: int) -> None:
    assert points(make_plan(mode=mode, evals=("aime", "gsm8k", "mmlu"))) == number


def test_the_estimate_rounds_up(make_plan: MakePlan) -> None:
    plans = [make_plan(conc=(1,), gpus=1, duration_s=30.0, timeouts=Timeouts(ready_s=31)) for _ in range(3)]
    assert estimate(plans) == Estimate(3, 4)  # 3 * 61 s

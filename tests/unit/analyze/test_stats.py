"""Percentiles and their intervals, against brute force."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from serving_bench.analyze import bootstrap
from serving_bench.analyze.bootstrap import percentile_interval, room_weights
from serving_bench.analyze.stats import Notes, Values, distribution


def plain_percentile(values: list[float], q: float) -> float:
    """Linear interpolation between closest ranks, written out."""
    ordered = sorted(values)
    position = (len(ordered) - 1) * q
    below = int(position)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (position - below)


@pytest.mark.parametrize(
    ("n", "given_names", "marks"),
    [
        (0, set(), ()),
        (1, set(), ()),
        (2, {"p50"}, ("p50",)),
        (9, {"p50"}, ("p50",)),
        (10, {"p50", "p90"}, ("p50", "p90")),
        (19, {"p50", "p90"}, ("p50", "p90")),
        (20, {"p50", "p90", "p95"}, ("p90", "p95")),
        (99, {"p50", "p90", "p95"}, ("p90", "p95")),
        (100, {"p50", "p90", "p95", "p99"}, ("p95", "p99")),
        (200, {"p50", "p90", "p95", "p99"}, ("p99",)),
        (1000, {"p50", "p90", "p95", "p99"}, ()),
    ],
)
def test_a_percentile_is_given_from_the_n_on_that_carries_it(
    n: int, given_names: set[str], marks: tuple[str, ...]
) -> None:
    notes = Notes()
    values = Values(np.arange(float(n)), np.arange(n))
    found = distribution(values, room_weights(max(1, n), 50), notes, "ttft_ms.all")
    assert {name for name in ("p50", "p90", "p95", "p99") if getattr(found, name) is not None} == given_names
    assert found.marks == marks
    absent = {f"ttft_ms.all.{name}" for name in ("p50", "p90", "p95", "p99")} - {
        f"ttft_ms.all.{x}" for x in given_names
    }
    assert set(notes.reasons) & absent == (absent if n else set())
    assert ("ttft_ms.all" in notes.reasons) == (n == 0)


@given(st.lists(st.floats(0, 1e6), min_size=20, max_size=120))
def test_percentiles_interpolate_linearly(values: list[float]) -> None:
    n = len(values)
    found = distribution(Values(np.array(values), np.zeros(n, np.int64)), room_weights(1, 5), Notes(), "x")
    assert found.p50 == pytest.approx(plain_percentile(values, 0.50), rel=1e-9, abs=1e-9)
    assert found.p95 == pytest.approx(plain_percentile(values, 0.95), rel=1e-9, abs=1e-9)


def test_values_that_are_not_known_do_not_count() -> None:
    values = Values(np.array([1.0, np.nan, 3.0]), np.array([0, 1, 2]))
    assert distribution(values.where(np.array([True, True, True])), room_weights(3, 50), Notes(), "x").n == 2


def test_every_resample_draws_as_many_rooms_as_there_are() -> None:
    weights = room_weights(7, 500)
    assert (weights.sum(axis=1) == 7).all()
    assert np.array_equal(weights, room_weights(7, 500))


@settings(max_examples=30, deadline=None)
@given(st.integers(2, 40), st.integers(0, 2**32 - 1), st.sampled_from([0.5, 0.95]))
def test_the_interval_equals_resampling_the_data_itself(rooms: int, seed: int, q: float) -> None:
    rng = np.random.default_rng(seed)
    room = rng.integers(0, rooms, size=rooms * 6)
    values = np.round(rng.lognormal(3, 1, size=rooms * 6), 1)
    weights = room_weights(rooms, 200)
    drawn = [np.percentile(np.repeat(values, row[room]), 100 * q) for row in weights if row[room].sum()]
    found = percentile_interval(values, room, weights, q)
    assert found == pytest.approx(tuple(np.percentile(drawn, [2.5, 97.5])))


def test_a_band_that_is_too_narrow_is_widened() -> None:
    """One huge room throws a resample's percentile far from the sample's."""
    room = np.concatenate([np.zeros(3_000, np.int64), np.arange(1, 9)])
    values = np.concatenate([np.arange(3_000.0), np.full(8, 1e6)])
    weights = room_weights(9, 300)
    drawn = [np.percentile(np.repeat(values, row[room]), 50) for row in weights]
    assert percentile_interval(values, room, weights, 0.5) == pytest.approx(tuple(np.percentile(drawn, [2.5, 97.5])))


def test_chunks_do_not_change_the_interval(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    values, room, weights = rng.lognormal(3, 1, 600), np.arange(600) % 40, room_weights(40)
    whole = percentile_interval(values, room, weights, 0.95)
    monkeypatch.setattr(bootstrap, "_CHUNK", 5_000)
    assert percentile_interval(values, room, weights, 0.95) == whole


def test_one_room_gives_no_interval() -> None:
    notes = Notes()
    found = distribution(Values(np.arange(30.0), np.zeros(30, np.int64)), room_weights(1, 50), notes, "x")
    assert (found.p95_ci, found.p50_ci) == (None, None)
    assert "two rooms" in notes.reasons["x.p95_ci"]


def test_resampling_rooms_is_wider_than_resampling_requests_where_rooms_differ() -> None:
    rng = np.random.default_rng(5)
    room = np.repeat(np.arange(30), 20)
    values = 100 + 20 * rng.standard_normal(30)[room] + rng.standard_normal(600)
    by_room = percentile_interval(values, room, room_weights(30), 0.5)
    by_request = percentile_interval(values, np.arange(600), room_weights(600), 0.5)
    assert by_room is not None
    assert by_request is not None
    assert by_room[1] - by_room[0] > 2 * (by_request[1] - by_request[0])

"""Percentile intervals by resampling rooms.

Requests of one room depend on one another (the later prompts hold the earlier
ones), so whole rooms are drawn, with replacement. A resample is a weight per
room; its percentile is read from cumulated weights over the sorted values, so
no data is copied. Because a resampled percentile lies near the sample's own,
only a band of values around it is cumulated per resample; what lies below
enters as one number per room, and the band is widened until it holds every
resample's percentile, so the result is exact.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from serving_bench.analyze.arrays import Floats, Ints

RESAMPLES = 2_000
SEED = 20_260_101
"""Fixed, so that the same data give the same interval."""

_CHUNK = 2_000_000
"""Weights cumulated at a time: bounds memory to some tens of MB."""

Weights = npt.NDArray[np.int32]


@dataclass(frozen=True)
class _Sample:
    """Values in ascending order with the room of each."""

    values: Floats
    rooms: Ints


def room_weights(rooms: int, resamples: int = RESAMPLES, seed: int = SEED) -> Weights:
    """How often each room is drawn: a row per resample, each adding up to ``rooms``."""
    rng = np.random.default_rng(seed)
    weights = np.empty((resamples, rooms), dtype=np.int32)
    step = max(1, _CHUNK // rooms)
    for start in range(0, resamples, step):
        rows = min(step, resamples - start)
        drawn = rng.integers(0, rooms, size=(rows, rooms)) + rooms * np.arange(rows)[:, None]
        weights[start : start + rows] = np.bincount(drawn.ravel(), minlength=rows * rooms).reshape(rows, rooms)
    return weights


def percentile_interval(values: Floats, rooms: Ints, weights: Weights, q: float) -> tuple[float, float] | None:
    """95 % interval of the q-quantile (0 < q < 1); null where fewer than two rooms have values.

    ``rooms`` names the room of each value as a column of ``weights``.
    """
    if len(np.unique(rooms)) < 2:  # noqa: PLR2004  one room resampled is always itself
        return None
    order = np.argsort(values, kind="stable")
    sample = _Sample(values[order], rooms[order])
    drawn = _quantiles(sample, weights, q)
    low, high = np.percentile(drawn, [2.5, 97.5])
    return float(low), float(high)


def _quantiles(sample: _Sample, weights: Weights, q: float) -> Floats:
    """The q-quantile of every resample that drew at least one value."""
    sizes = _below(sample.rooms, weights)
    weights, sizes = weights[sizes > 0], sizes[sizes > 0]
    # numpy's default: linear interpolation at position (n - 1) * q of the sorted values.
    position = (sizes - 1) * q
    lower = np.floor(position).astype(np.int64)
    left, right = _order_statistics(sample, weights, np.stack([lower, np.minimum(lower + 1, sizes - 1)]), q)
    drawn: Floats = left + (right - left) * (position - lower)
    return drawn


def _below(rooms: Ints, weights: Weights) -> Ints:
    """Weight of the values whose rooms are given, per resample."""
    counts = np.bincount(rooms, minlength=weights.shape[1]).astype(np.int32)
    return (weights @ counts).astype(np.int64)


def _order_statistics(sample: _Sample, weights: Weights, ranks: Ints, q: float) -> Floats:
    """Values at ``ranks`` (from 0; two rows, a column per resample)."""
    n = len(sample.values)
    half = max(200, int(12 * math.sqrt(n * q * (1 - q))))
    while True:
        low = max(0, int(n * q) - half)
        high = min(n, int(n * q) + half)
        places = _places(sample.rooms[low:high], weights, ranks - _below(sample.rooms[:low], weights))
        if places is not None:
            found: Floats = sample.values[low:high][places]
            return found
        half *= 4


def _places(rooms: Ints, weights: Weights, ranks: Ints) -> Ints | None:
    """First place in the band at which the cumulated weight exceeds each rank; null if one lies outside."""
    width = len(rooms)
    places = np.empty_like(ranks)
    step = max(1, _CHUNK // width)
    for start in range(0, len(weights), step):
        wanted = ranks[:, start : start + step]
        cumulated = np.cumsum(weights[start : start + step].take(rooms, axis=1), dtype=np.int64)
        ends = cumulated[width - 1 :: width]
        begins = np.concatenate(([0], ends[:-1]))
        if bool((wanted < 0).any()) or bool((begins + wanted >= ends).any()):
            return None
        found = np.searchsorted(cumulated, begins + wanted, side="right")
        places[:, start : start + step] = found - width * np.arange(len(ends))
    return places

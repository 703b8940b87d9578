"""Records and request trace, joined: who served a request, and where its TTFT went."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from serving_bench.analyze.arrays import Bools, Floats, Ints
from serving_bench.analyze.misses import Causes
from serving_bench.analyze.records import Records
from serving_bench.analyze.stats import percentile
from serving_bench.analyze.trace import Traced
from serving_bench.analyze.turns import Turns
from serving_bench.report_contract import Anatomy, AnatomyByTurn, Part

_ROUNDING_MS = 1e-3
"""Parts are differences of readings with at most microseconds: less than this below zero is rounding."""

UNKNOWN = -1
"""Replica of a record that is not in the trace, or whose worker no replica had."""


@dataclass(frozen=True)
class Joined:
    """Per record its request in the trace, or null."""

    traced: list[Traced | None]
    causes: list[Causes | None]

    def cached(self, place: int) -> int | None:
        """Cached prompt tokens of a record: as the engine said, or else as the router counted."""
        causes, traced = self.causes[place], self.traced[place]
        if causes is not None:
            return causes.cached
        return None if traced is None else traced.cached_tokens

    @property
    def found(self) -> Bools:
        return np.array([traced is not None for traced in self.traced], dtype=np.bool_)


def index_trace(requests: Sequence[Traced]) -> dict[str, int]:
    """x_request_id → place in the trace; of a request that was sent twice the last one counts."""
    return {request.request_id: place for place, request in enumerate(requests) if request.request_id}


def join(
    records: Records, requests: Sequence[Traced], causes: Sequence[Causes | None], at: Mapping[str, int]
) -> Joined:
    """Look each record up by its x_request_id."""
    places = [at.get(request_id) if request_id else None for request_id in records.request_id]
    return Joined(
        traced=[None if place is None else requests[place] for place in places],
        causes=[None if place is None else causes[place] for place in places],
    )


def replica_of(joined: Joined, workers: Mapping[int, int]) -> Ints:
    """Replica index per record (``UNKNOWN`` where it cannot be said)."""
    served = (
        UNKNOWN if one is None or one.worker is None else workers.get(one.worker, UNKNOWN) for one in joined.traced
    )
    return np.fromiter(served, dtype=np.int64, count=len(joined.traced))


@dataclass(frozen=True)
class _Parts:
    """Parts of TTFT per record (ms); NaN where one of them is not known."""

    client: Floats
    queue: Floats
    prefill: Floats
    rest: Floats

    def all(self) -> tuple[Floats, Floats, Floats, Floats]:
        return self.client, self.queue, self.prefill, self.rest


def _column(joined: Joined, name: str) -> Floats:
    nan = float("nan")
    read = (nan if one is None or getattr(one, name) is None else getattr(one, name) for one in joined.traced)
    return np.fromiter(read, dtype=np.float64, count=len(joined.traced))


def _parts(records: Records, joined: Joined) -> _Parts:
    server, queue, prefill = (_column(joined, name) for name in ("ttft_ms", "queue_ms", "prefill_ms"))
    return _Parts(client=records.ttft_ms - server, queue=queue, prefill=prefill, rest=server - queue - prefill)


def _part(values: Floats) -> Part:
    return Part(p50=percentile(values, 50), p95=percentile(values, 95), mean=float(values.mean()))


def _anatomy(parts: _Parts, mask: Bools) -> Anatomy:
    known = mask & ~np.isnan(np.sum(parts.all(), axis=0))
    if not known.any():
        return Anatomy()
    client, queue, prefill, rest = (column[known] for column in parts.all())
    negative = np.min([client, queue, prefill, rest], axis=0) < -_ROUNDING_MS
    return Anatomy(
        n=int(known.sum()),
        client=_part(client),
        queue=_part(queue),
        prefill=_part(prefill),
        rest=_part(rest),
        negative=int(negative.sum()),
    )


def anatomy(records: Records, joined: Joined, turns: Turns) -> AnatomyByTurn:
    """TTFT in parts, by turn class, over completed and joined records.

    client = TTFT as the client saw it - TTFT as the router saw it; queue =
    waiting for a worker and for prefill; rest = what neither names.
    """
    parts = _parts(records, joined)
    return AnatomyByTurn(
        all=_anatomy(parts, records.completed),
        first=_anatomy(parts, records.completed & turns.first),
        later=_anatomy(parts, records.completed & turns.later),
    )


def sessions_moved(records: Records, replica: Ints) -> int:
    """Conversations (replays) whose requests went to more than one replica."""
    seen: dict[str, int] = {}
    moved: set[str] = set()
    for correlation, index in zip(records.correlation, replica.tolist(), strict=True):
        if index != UNKNOWN and seen.setdefault(correlation, index) != index:
            moved.add(correlation)
    return len(moved)

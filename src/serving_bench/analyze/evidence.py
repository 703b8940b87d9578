"""All that is known about one point, gathered for the checks and the report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from serving_bench.analyze.arrays import Floats, Ints
from serving_bench.analyze.bootstrap import Weights
from serving_bench.analyze.inputs import LoadedPoint, LoadedRun
from serving_bench.analyze.join import Joined
from serving_bench.analyze.misses import Causes
from serving_bench.analyze.records import Records
from serving_bench.analyze.turns import Turns
from serving_bench.report_contract import ByTurn, Cache, Replica

NS_PER_MS = 1e6
NS_PER_S = 1e9


@dataclass(frozen=True)
class Evidence:
    """A point with everything computed from it, before it is judged."""

    run: LoadedRun
    point: LoadedPoint
    turns: Turns
    weights: Weights
    """Resamples of the rooms, the same for every interval of the point."""
    joined: Joined
    causes: Sequence[Causes | None]
    """Per request of the whole trace what became of its prompt."""
    replica: Ints
    """Replica index per profiling record."""
    replicas: tuple[Replica, ...]
    imbalance: float | None
    ttft_ms: ByTurn
    cache: Cache
    backwards: Mapping[str, list[str]]

    @property
    def records(self) -> Records:
        return self.point.artifacts.records.profiling

    @property
    def warmup(self) -> Records:
        return self.point.artifacts.records.warmup

    @property
    def completed(self) -> int:
        return int(self.records.completed.sum())

    @property
    def joined_share(self) -> float | None:
        """Share of completed requests that the trace knows; null without a trace."""
        if not self.run.trace.requests or not self.completed:
            return None
        return float((self.joined.found & self.records.completed).sum() / self.completed)

    @property
    def credit_delay_ms(self) -> Floats:
        """How long each completed request waited in the client before it was sent."""
        known = self.records.completed & (self.records.credit_ns >= 0)
        delay: Floats = (self.records.start_ns[known] - self.records.credit_ns[known]) / NS_PER_MS
        return delay

    @property
    def window_s(self) -> float | None:
        """First start to last end of the profiling requests."""
        if not self.records.n:
            return None
        return float((np.max(self.records.end_ns) - np.min(self.records.start_ns)) / NS_PER_S)

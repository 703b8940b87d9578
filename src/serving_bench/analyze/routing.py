"""Which replica served what."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from serving_bench.analyze import counters
from serving_bench.analyze.aiperf import Artifacts
from serving_bench.analyze.arrays import Ints
from serving_bench.analyze.counters import Growth, growth
from serving_bench.analyze.inputs import ROUTER, LoadedPoint
from serving_bench.analyze.join import UNKNOWN, Joined
from serving_bench.analyze.promtext import backwards
from serving_bench.analyze.stats import Notes
from serving_bench.report_contract import Replica

_DECIMAL = re.compile(r"[0-9]{1,20}")
APPROXIMATE = "from aiperf's scrapes of its profiling phase, whose edges are not exact"


@dataclass(frozen=True)
class Endpoints:
    """Replicas and frontend of a point: where they are, and their counters' growth where it is known."""

    replicas: tuple[tuple[int, str], ...]
    """(index, base URL) in order."""
    growths: tuple[Growth, ...]
    """One per replica, or none at all."""
    frontend: Growth | None
    own: bool
    """From own scrapes rather than aiperf's."""


def _is_frontend(one: Growth) -> bool:
    return any(name.startswith("dynamo_frontend_") for name in one.series)


def _is_replica(one: Growth) -> bool:
    return not _is_frontend(one) and (
        counters.served_requests(one) is not None or counters.engine_cached(one) is not None
    )


def endpoints(point: LoadedPoint) -> Endpoints:
    """Replicas as launch names them; of a bare artifact directory, by what each endpoint exposes."""
    named = tuple((one.index, one.endpoint) for one in point.result.replicas) if point.result else ()
    if point.scrapes:
        grown = {name: growth(pair.before, pair.after) for name, pair in point.scrapes.items()}
        growths = [grown.get(f"replica.{index}") for index, _ in named]
        known = tuple(one for one in growths if one is not None)
        return Endpoints(named, known if len(known) == len(named) else (), grown.get(ROUTER), own=True)
    return _from_aiperf(point.artifacts, named)


def _from_aiperf(artifacts: Artifacts, named: tuple[tuple[int, str], ...]) -> Endpoints:
    frontends = [one for one in artifacts.endpoints.values() if _is_frontend(one)]
    urls = sorted(url for url, one in artifacts.endpoints.items() if _is_replica(one))
    replicas = named or tuple(enumerate(urls))
    known = [artifacts.endpoints.get(url.rstrip("/")) for _, url in replicas]
    growths = tuple(one for one in known if one is not None)
    return Endpoints(
        replicas,
        growths if len(growths) == len(replicas) else (),
        frontends[0] if len(frontends) == 1 else None,
        own=False,
    )


def worker_map(point: LoadedPoint) -> dict[int, int]:
    """Worker id → replica index, from point.json or else from the replicas' own metric labels.

    Workers label their metrics with their id in hexadecimal; the trace has it in decimal.
    """
    workers: dict[int, int] = {}
    for one in point.result.replicas if point.result else ():
        pair = point.scrapes.get(f"replica.{one.index}")
        labels = pair.after.labels("worker_id") if pair and not one.worker_ids else set()
        workers |= {int(identity): one.index for identity in one.worker_ids if _DECIMAL.fullmatch(identity)}
        workers |= {int(label, 16): one.index for label in labels if _is_hex(label)}
    return workers


def _is_hex(text: str) -> bool:
    try:
        int(text, 16)
    except ValueError:
        return False
    return True


def per_replica(places: Endpoints, joined: Joined, replica: Ints, notes: Notes) -> tuple[Replica, ...]:
    """Profiling requests and tokens of each replica: exact from the trace, else from aiperf's scrapes."""
    if any(index != UNKNOWN for index in replica.tolist()):
        return tuple(_from_trace(index, url, joined, replica) for index, url in places.replicas)
    if places.growths and not places.own:
        notes.add("replicas", APPROXIMATE)
        return tuple(_from_growth(*place, one) for place, one in zip(places.replicas, places.growths, strict=True))
    notes.add("replicas", "needs the request trace, or aiperf's server metrics of every replica")
    return tuple(Replica(index=index, endpoint=url) for index, url in places.replicas)


def _from_trace(index: int, url: str, joined: Joined, replica: Ints) -> Replica:
    places = np.flatnonzero(replica == index).tolist()
    served = [joined.traced[place] for place in places]
    cached = [joined.cached(place) for place in places]
    return Replica(
        index=index,
        endpoint=url,
        requests=len(served),
        prompt_tokens=sum(one.input_tokens for one in served if one is not None),
        cached_tokens=None if None in cached else sum(count for count in cached if count is not None),
    )


def _from_growth(index: int, url: str, one: Growth) -> Replica:
    counts = (counters.served_requests(one), one.any_of(counters.PROMPT), counters.engine_cached(one))
    requests, prompt, cached = (None if count is None else round(count) for count in counts)
    return Replica(index=index, endpoint=url, requests=requests, prompt_tokens=prompt, cached_tokens=cached)


def imbalance(replicas: Sequence[Replica]) -> float | None:
    """Requests of the busiest replica ÷ the mean; null where a count is not known or all are zero."""
    counts = [one.requests for one in replicas if one.requests is not None]
    if not counts or len(counts) != len(replicas) or not sum(counts):
        return None
    return max(counts) * len(counts) / sum(counts)


def went_backwards(point: LoadedPoint) -> Mapping[str, list[str]]:
    """Endpoint → counters that were lower after the point than before it."""
    found = {name: backwards(pair.before, pair.after) for name, pair in point.scrapes.items()}
    return {name: names for name, names in found.items() if names}

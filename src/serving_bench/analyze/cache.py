"""The cache ledger: what each independent source says about cached prompt tokens.

Four witnesses, each over the profiling requests only:

* **engine**: the replicas' own counters;
* **frontend**: Dynamo's frontend, sums over its requests;
* **responses**: the usage that came back with each response;
* **trace**: the request trace, per request, as the router counted when it
  routed the request.

Counters are read from own scrapes before and after the point, which span
warm-up and profiling. The warm-up's share is taken off by what its responses
say; where a warm-up response has no usage that cannot be done, and the witness
is null with the reason. Without own scrapes the growth that aiperf scraped over
its profiling phase is used, whose edges are not exact.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from serving_bench.analyze import counters
from serving_bench.analyze.arrays import Bools
from serving_bench.analyze.counters import Growth
from serving_bench.analyze.join import Joined
from serving_bench.analyze.misses import CAUSES, Causes
from serving_bench.analyze.records import Records
from serving_bench.analyze.stats import Notes
from serving_bench.analyze.turns import Turns
from serving_bench.report_contract import Cache, Misses, PromptShares, PromptSharesByTurn, Witness

TOLERATED_SPREAD = 0.02
"""Witnesses that differ by more than this share contradict each other."""

_OWN = "own scrapes; the warm-up's share is taken off by what its responses say"
_AIPERF = "aiperf's scrapes of its profiling phase, whose edges are not exact"


@dataclass(frozen=True)
class Tokens:
    """Cached and all prompt tokens; ``problem`` says why they are not known."""

    cached: float | None = None
    prompt: float | None = None
    problem: str = ""

    @property
    def share(self) -> float | None:
        return self.cached / self.prompt if self.prompt and self.cached is not None else None


@dataclass(frozen=True)
class Window:
    """Growth of the endpoints' counters, and the warm-up that it still holds."""

    frontend: Growth | None
    replicas: Sequence[Growth]
    warmup: Tokens
    """What to take off; zero where the window holds no warm-up."""
    source: str


def usage(records: Records) -> Tokens:
    """Cached and prompt tokens as the responses of completed requests report them."""
    completed = records.completed
    n = int(completed.sum())
    cached, prompt = records.cached_tokens[completed], records.prompt_tokens[completed]
    missing = int((np.isnan(cached) | np.isnan(prompt)).sum())
    if missing:
        return Tokens(problem=f"{missing} of {n} responses carry no count of cached or prompt tokens")
    return Tokens(float(cached.sum()), float(prompt.sum()))


def warmup_usage(warmup: Records) -> Tokens:
    """What the warm-up put into the counters."""
    lost = warmup.n - int(warmup.completed.sum())
    if lost:
        return Tokens(problem=f"{lost} of {warmup.n} warm-up requests did not complete, so their share is not known")
    found = usage(warmup)
    return Tokens(problem=f"in the warm-up {found.problem}") if found.problem else found


def own_window(frontend: Growth | None, replicas: Sequence[Growth], warmup: Records) -> Window:
    return Window(frontend, replicas, warmup_usage(warmup), _OWN)


def aiperf_window(frontend: Growth | None, replicas: Sequence[Growth]) -> Window:
    return Window(frontend, replicas, Tokens(0.0, 0.0), _AIPERF)


def _less(total: Tokens, warmup: Tokens) -> Tokens:
    if warmup.problem:
        return Tokens(problem=warmup.problem)
    cached = None if total.cached is None else total.cached - (warmup.cached or 0.0)
    prompt = None if total.prompt is None else total.prompt - (warmup.prompt or 0.0)
    if cached is not None and prompt is not None and not 0 <= cached <= prompt:
        return Tokens(
            problem=f"the counters grew by {cached:,.0f} cached of {prompt:,.0f} prompt tokens: that cannot be"
        )
    return Tokens(cached, prompt)


def _engine(window: Window) -> Tokens:
    total = Tokens(
        counters.summed(counters.engine_cached(one) for one in window.replicas),
        counters.summed(one.any_of(counters.PROMPT) for one in window.replicas),
    )
    if not window.replicas:
        return Tokens(problem="no metrics of any replica were scraped")
    if total.cached is None or total.prompt is None:
        return Tokens(problem="the engine's metrics have no prefix-cache counters")
    return _less(total, window.warmup)


def _hit_rate(window: Window, notes: Notes) -> float | None:
    hits = counters.summed(one.any_of(counters.HITS) for one in window.replicas)
    queries = counters.summed(one.any_of(counters.QUERIES) for one in window.replicas)
    found = Tokens(problem="the engine's metrics have no prefix-cache hits and queries")
    if hits is not None and queries is not None:
        found = _less(Tokens(hits, queries), window.warmup)
    if found.share is None:
        notes.add("cache.engine_hit_rate", found.problem or "no queries in the window")
    return found.share


def _frontend(window: Window) -> Tokens:
    if window.frontend is None:
        return Tokens(problem="no metrics of a frontend were scraped")
    cached = window.frontend.any_of(counters.FRONTEND_CACHED)
    prompt = window.frontend.any_of(counters.FRONTEND_PROMPT)
    if cached is None or prompt is None:
        return Tokens(problem="the frontend's metrics have no sums of cached and prompt tokens")
    return _less(Tokens(cached, prompt), window.warmup)


def _trace(records: Records, joined: Joined) -> Tokens:
    known = [
        (one.cached_tokens, one.input_tokens)
        for one, completed in zip(joined.traced, records.completed.tolist(), strict=True)
        if completed and one is not None and one.cached_tokens is not None
    ]
    if not known:
        return Tokens(problem="no profiling request is in a request trace")
    return Tokens(float(sum(cached for cached, _ in known)), float(sum(prompt for _, prompt in known)))


def _witness(name: str, tokens: Tokens, notes: Notes, source: str = "") -> Witness:
    if tokens.share is None:
        reason = tokens.problem or "no prompt tokens in the window"
        notes.add(f"cache.{name}_cached_share", reason)
        return Witness(name=name, note=reason)
    return Witness(
        name=name,
        cached_tokens=None if tokens.cached is None else round(tokens.cached),
        prompt_tokens=None if tokens.prompt is None else round(tokens.prompt),
        share=tokens.share,
        note=source,
    )


def _shares(causes: Sequence[Causes]) -> PromptShares:
    prompt = sum(one.prompt for one in causes)
    if not prompt:
        return PromptShares()
    parts = {name: sum(getattr(one, name) for one in causes) / prompt for name in ("cached", *CAUSES)}
    return PromptShares(n=len(causes), prompt_tokens=prompt, **parts)


def prompt_shares(records: Records, joined: Joined, turns: Turns) -> PromptSharesByTurn:
    """What became of the prompt tokens of completed, joined requests, by turn class."""

    def of(mask: Bools) -> PromptShares:
        keep = (mask & records.completed).tolist()
        return _shares([one for one, kept in zip(joined.causes, keep, strict=True) if kept and one is not None])

    everything: Bools = np.ones(records.n, dtype=np.bool_)
    return PromptSharesByTurn(all=of(everything), first=of(turns.first), later=of(turns.later))


def _misses(shares: PromptShares, notes: Notes) -> tuple[Misses, float | None]:
    """Misses by cause, and what could have been reused at best."""
    if shares.cached is None or shares.elsewhere is None or shares.evicted is None:
        reason = "needs a request trace with block hashes"
        for path in ("cache.misses", "cache.trace_reusable_share"):
            notes.add(path, reason)
        return Misses(), None
    misses = Misses(new=shares.new, elsewhere=shares.elsewhere, evicted=shares.evicted, partial=shares.partial)
    return misses, shares.cached + shares.elsewhere + shares.evicted


def ledger(records: Records, joined: Joined, turns: Turns, window: Window, notes: Notes) -> Cache:
    """All witnesses side by side, and the misses by cause."""
    by_turn = prompt_shares(records, joined, turns)
    misses, reusable = _misses(by_turn.all, notes)
    witnesses = (
        _witness("engine", _engine(window), notes, window.source),
        _witness("frontend", _frontend(window), notes, window.source),
        _witness("responses", usage(records), notes, "usage in the responses of completed requests"),
        _witness("trace", _trace(records, joined), notes, "the router's count per request, taken when it routed it"),
    )
    shares: Mapping[str, float | None] = {one.name: one.share for one in witnesses}
    known = [share for share in shares.values() if share is not None]
    return Cache(
        engine_hit_rate=_hit_rate(window, notes),
        engine_cached_share=shares["engine"],
        responses_cached_share=shares["responses"],
        frontend_cached_share=shares["frontend"],
        trace_cached_share=shares["trace"],
        trace_reusable_share=reusable,
        misses=misses,
        by_turn=by_turn,
        witnesses=witnesses,
        spread=max(known) - min(known) if len(known) > 1 else None,
    )

"""Why prompt tokens were not read from the prefix cache, from block hashes.

For each request of the trace, with the requests before it in the same start of
the deployment as history:

* **cached**: read from cache, as the engine's response said, or else the trace
  (whose count is the router's, taken when it routed the request: it misses what
  another request brought in the meantime);
* **evicted**: this replica had computed the block before and did not reuse it;
* **elsewhere**: only another replica had computed it;
* **new**: no replica had;
* **partial**: the tail that is never reused: shorter than a block, or the last
  block of a prompt that fills its blocks (an engine always computes at least
  the last token, so it cannot take a whole prompt from cache).

The five add up to the prompt. A block counts as computed from the moment the
request that brought it had its first token; a request that is still being
prefilled when another starts gives it nothing, so what both compute is *new*
for both. Where the trace has no times, its order decides.

Hashes are sequence hashes, each standing for its whole prefix. A replica that
knows a block of a prompt therefore knows all blocks before it, which is what
makes binary search over a prompt's blocks right.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from serving_bench.analyze.trace import Traced

CAUSES = ("new", "elsewhere", "evicted", "partial")


@dataclass(frozen=True, slots=True)
class Causes:
    """Prompt tokens of one request by what happened to them."""

    prompt: int
    cached: int
    new: int
    elsewhere: int
    evicted: int
    partial: int
    opening: bool
    """The replica had not computed the prompt's first block in this start: it met the cache as the start left it.

    Of several such that overlap, one may still find what another has just brought.
    """


@dataclass
class _History:
    """Blocks computed so far in one start of the deployment, per replica and by any."""

    per_worker: dict[int, set[int]] = field(default_factory=dict)
    anywhere: set[int] = field(default_factory=set)

    def add(self, worker: int, blocks: list[int]) -> None:
        here = self.per_worker.setdefault(worker, set())
        here.update(blocks[_known(blocks, here) :])
        self.anywhere.update(blocks[_known(blocks, self.anywhere) :])


def _known(blocks: list[int], seen: set[int]) -> int:
    """How many leading blocks are in ``seen``."""
    low, high = 0, len(blocks)
    while low < high:
        middle = (low + high) // 2
        if blocks[middle] in seen:
            low = middle + 1
        else:
            high = middle
    return low


def _moments(request: Traced) -> tuple[float, float] | None:
    """When the prefill of a request began and when its blocks were computed (ms since the epoch)."""
    if request.received_ms is None:
        return None
    begun = request.received_ms + (request.queue_ms or 0.0)
    # A request that ended without a first token is taken to have computed its blocks by its end.
    computed = request.ended_ms if request.ttft_ms is None else request.received_ms + request.ttft_ms
    return None if computed is None else (begun, max(begun, computed))


def _sweep(requests: Sequence[Traced]) -> list[tuple[int, bool]]:
    """(request, done) in time order: each request begins (done false) and is computed (done true)."""
    moments = [_moments(request) for request in requests]
    if any(moment is None for moment in moments):
        return [(index, done) for index in range(len(requests)) for done in (False, True)]
    events = [(moment[done], not done, index) for index, moment in enumerate(moments) if moment for done in (0, 1)]
    return [(index, not begins) for _, begins, index in sorted(events)]


def _whole_blocks(request: Traced) -> list[int]:
    """Hashes of the blocks that the prompt fills; the trace also hashes the unfilled tail."""
    blocks: list[int] = request.hashes[: request.input_tokens // request.block_size].tolist()
    return blocks


def _explain(request: Traced, told: int, history: _History) -> Causes:
    size, prompt = request.block_size, request.input_tokens
    cached = min(prompt, told)
    blocks = _whole_blocks(request)
    reusable = (prompt - 1) // size * size
    here_blocks = _known(blocks, history.per_worker.get(request.worker or 0, set()))
    here = min(here_blocks * size, reusable)
    known = _known(blocks, history.anywhere) * size
    anywhere = min(known, reusable)
    evicted = max(0, here - cached)
    elsewhere = max(0, anywhere - max(here, cached))
    new = max(0, len(blocks) * size - max(known, cached))
    partial = prompt - cached - evicted - elsewhere - new
    return Causes(prompt, cached, new, elsewhere, evicted, partial, opening=bool(blocks) and not here_blocks)


def _usable(request: Traced) -> bool:
    known = request.block_size > 0 and request.worker is not None
    return known and len(request.hashes) >= request.input_tokens // request.block_size


def _explain_start(requests: Sequence[Traced], cached: Mapping[str, int]) -> list[Causes | None]:
    history = _History()
    causes: list[Causes | None] = [None] * len(requests)
    for index, done in _sweep(requests):
        request = requests[index]
        if not _usable(request) or request.worker is None:
            continue
        if done:
            history.add(request.worker, _whole_blocks(request))
            continue
        told = cached.get(request.request_id, request.cached_tokens)
        causes[index] = None if told is None else _explain(request, told, history)
    return causes


def explain(requests: Sequence[Traced], cached: Mapping[str, int]) -> list[Causes | None]:
    """Causes of each request of a trace; null where it has no hashes, worker or count of cached tokens.

    ``cached`` holds what the responses said, by x_request_id. Every start of the
    deployment has a history of its own.
    """
    causes: list[Causes | None] = []
    at = 0
    while at < len(requests):
        end = at
        while end < len(requests) and requests[end].start == requests[at].start:
            end += 1
        causes.extend(_explain_start(requests[at:end], cached))
        at = end
    return causes

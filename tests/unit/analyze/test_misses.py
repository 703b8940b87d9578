"""Causes of cache misses on traces whose causes are known by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from serving_bench.analyze.misses import Causes, explain
from serving_bench.analyze.trace import Traced

A, B = 11, 22
"""Two replicas."""


def traced(
    name: str, worker: int | None, tokens: int, blocks: str, cached: int, *, at: float | None = None, start: int = 0
) -> Traced:
    """A request of 4-token blocks; each letter of ``blocks`` is a block in its prefix.

    With ``at`` it is received then, prefilled at once and has its first token after 10 ms.
    """
    hashes = [hash(blocks[: end + 1]) % 2**64 for end in range(len(blocks))]
    return Traced(
        request_id=name,
        start=start,
        worker=worker,
        input_tokens=tokens,
        cached_tokens=cached,
        received_ms=at,
        ended_ms=None if at is None else at + 50,
        queue_ms=0.0 if at is not None else None,
        prefill_ms=10.0 if at is not None else None,
        ttft_ms=10.0 if at is not None else None,
        block_size=4,
        hashes=np.array(hashes, dtype=np.uint64),
    )


def told(causes: Causes | None) -> dict[str, int]:
    assert causes is not None
    parts = {"cached", "new", "elsewhere", "evicted", "partial"}
    assert sum(getattr(causes, part) for part in parts) == causes.prompt
    return {part: getattr(causes, part) for part in parts if getattr(causes, part)}


def test_each_cause_by_hand() -> None:
    requests = [
        traced("first", A, 14, "abc", 0),  # three blocks and 2 tokens: all new
        traced("again", A, 14, "abc", 12),  # the same prompt on the same replica
        traced("routed", B, 14, "abc", 0),  # the same prompt on the other one
        traced("both", B, 18, "abcd", 12),  # its own blocks cached, one new
        traced("evicted", A, 18, "abcd", 4),  # had abc, reuses only a; d only B had
    ]
    assert [told(one) for one in explain(requests, {})] == [
        {"new": 12, "partial": 2},
        {"cached": 12, "partial": 2},
        {"elsewhere": 12, "partial": 2},
        {"cached": 12, "new": 4, "partial": 2},
        {"cached": 4, "evicted": 8, "elsewhere": 4, "partial": 2},
    ]


def test_the_last_block_of_a_prompt_that_fills_its_blocks_is_always_computed() -> None:
    first, again = explain([traced("1", A, 12, "abc", 0), traced("2", A, 12, "abc", 8)], {})
    assert told(first) == {"new": 12}
    assert told(again) == {"cached": 8, "partial": 4}


def test_another_prefix_makes_another_block() -> None:
    """Sequence hashes stand for the whole prefix: the same text after another start is new."""
    _, second = explain([traced("1", A, 8, "xb", 0), traced("2", A, 9, "yb", 0)], {})
    assert told(second) == {"new": 8, "partial": 1}


def test_a_request_still_in_prefill_gives_nothing_to_one_that_starts_meanwhile() -> None:
    requests = [
        traced("1", A, 9, "ab", 0, at=1000),
        traced("2", A, 9, "ab", 0, at=1005),
        traced("3", A, 9, "ab", 8, at=1020),
        traced("4", B, 9, "ab", 0, at=1030),
    ]
    assert [told(one) for one in explain(requests, {})] == [
        {"new": 8, "partial": 1},
        {"new": 8, "partial": 1},
        {"cached": 8, "partial": 1},
        {"elsewhere": 8, "partial": 1},
    ]


def test_times_decide_and_not_the_order_of_the_lines() -> None:
    """The trace holds requests in the order in which they ended."""
    late, early = traced("late", A, 9, "ab", 8, at=2000), traced("early", A, 9, "ab", 0, at=1000)
    assert [told(one) for one in explain([late, early], {})] == [{"cached": 8, "partial": 1}, {"new": 8, "partial": 1}]


def test_every_start_of_the_deployment_begins_with_empty_caches() -> None:
    requests = [
        traced("1", A, 9, "ab", 0, start=0),
        traced("2", B, 9, "ab", 0, start=1),
        traced("3", B, 9, "ab", 0, start=1),
    ]
    assert [told(one) for one in explain(requests, {})] == [
        {"new": 8, "partial": 1},
        {"new": 8, "partial": 1},
        {"evicted": 8, "partial": 1},
    ]


def test_what_the_engine_said_goes_before_the_routers_count() -> None:
    requests = [traced("1", A, 9, "ab", 0, at=1000), traced("2", A, 9, "ab", 0, at=1005)]
    assert told(explain(requests, {"2": 8})[1]) == {"cached": 8, "partial": 1}


def test_more_cached_than_history_explains_is_just_cached() -> None:
    """Blocks of generated tokens are cached too, though no prompt had them before."""
    _, second = explain([traced("1", A, 9, "ab", 0), traced("2", A, 17, "abcd", 12)], {})
    assert told(second) == {"cached": 12, "new": 4, "partial": 1}


def opening(*requests: Traced) -> list[bool]:
    return [one.opening for one in explain(requests, {}) if one]


def test_opening_requests_meet_the_cache_as_the_start_left_it() -> None:
    drawn = [(A, "ab", 0), (A, "ac", 0), (B, "a", 0), (A, "x", 0), (A, "a", 1), (A, "", 1)]
    requests = [
        traced(str(n), worker, 4 * len(text) + 1, text, 0, start=start) for n, (worker, text, start) in enumerate(drawn)
    ]
    assert opening(*requests) == [True, False, True, True, True, False]


def test_requests_that_overlap_at_the_start_are_all_opening() -> None:
    early, overlapping, late = (traced(str(at), A, 5, "a", 0, at=1000 + at) for at in (0, 4, 11))
    assert opening(early, overlapping, late) == [True, True, False]


def test_without_hashes_worker_or_count_there_is_no_cause() -> None:
    short = traced("short", A, 40, "ab", 0)
    nobody = traced("nobody", None, 9, "ab", 0)
    assert explain([short, nobody, traced("fine", A, 9, "ab", 0)], {})[:2] == [None, None]


@given(
    st.lists(
        st.tuples(
            st.sampled_from([A, B]),
            st.text("ab", min_size=0, max_size=6),
            st.integers(0, 3),
            st.integers(0, 30),
            st.one_of(st.none(), st.integers(0, 100)),
        ),
        max_size=25,
    )
)
def test_the_parts_always_add_up_to_the_prompt(
    drawn: list[tuple[int, str, int, int, int | None]],
) -> None:
    requests = [
        traced(str(n), worker, 4 * len(blocks) + tail + 1, blocks + "z", cached, at=at)
        for n, (worker, blocks, tail, cached, at) in enumerate(drawn)
    ]
    for one in explain(requests, {}):
        assert one is not None
        told(one)
        assert min(one.cached, one.new, one.elsewhere, one.evicted, one.partial) >= 0


@pytest.mark.parametrize("worker", [A, B])
def test_reusable_is_what_any_replica_had(worker: int) -> None:
    """cached + elsewhere + evicted does not depend on where the request went."""
    _, second = explain([traced("1", A, 13, "abc", 0), traced("2", worker, 13, "abc", 0)], {})
    assert second is not None
    assert second.cached + second.elsewhere + second.evicted == 12

"""Rooms and turns, with and without a rooms plan."""

from __future__ import annotations

import numpy as np
import pytest

from serving_bench.analyze.records import Records
from serving_bench.analyze.turns import assign, parse_rooms

PLAN = "conversation_id,room,room_turn\ncall-a,call,0\ncall-b,call,3\nlate,late,2\n"


def records(*rows: tuple[str, str, int]) -> Records:
    """Records of (conversation, replay, turn_index)."""
    n = len(rows)
    return Records(
        start_ns=np.zeros(n, np.int64),
        end_ns=np.zeros(n, np.int64),
        credit_ns=np.zeros(n, np.int64),
        turn_index=np.array([turn for _, _, turn in rows], np.int64),
        ttft_ms=np.zeros(n),
        itl_ms=np.zeros(n),
        latency_ms=np.zeros(n),
        prompt_tokens=np.zeros(n),
        cached_tokens=np.zeros(n),
        failed=np.zeros(n, np.bool_),
        cancelled=np.zeros(n, np.bool_),
        request_id=[str(number) for number in range(n)],
        correlation=[replay for _, replay, _ in rows],
        conversation=[conversation for conversation, _, _ in rows],
    )


def test_with_a_plan_a_second_conversation_goes_on_in_the_room() -> None:
    found = assign(
        records(("call-a", "x", 0), ("call-a", "x", 1), ("call-b", "y", 0), ("late", "z", 0)), parse_rooms(PLAN)
    )
    assert found.turn.tolist() == [0, 1, 3, 2]
    assert found.room.tolist() == [0, 0, 0, 1]
    assert found.first.tolist() == [True, False, False, False]
    assert (found.rooms, found.outside_plan) == (2, 0)


def test_without_a_plan_a_room_is_a_replay() -> None:
    found = assign(records(("call-a", "x", 0), ("call-a", "y", 0), ("call-a", "x", 1)), None)
    assert found.room.tolist() == [0, 1, 0]
    assert found.first.tolist() == [True, True, False]
    assert found.later.tolist() == [False, False, True]


def test_a_conversation_outside_the_plan_is_counted_and_stands_for_itself() -> None:
    found = assign(records(("stranger", "x", 1), ("call-a", "y", 0)), parse_rooms(PLAN))
    assert (found.outside_plan, found.rooms, found.turn.tolist()) == (1, 2, [1, 0])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "line 1"),
        ("conversation,room,turn\n", "line 1"),
        ("conversation_id,room,room_turn\na,b\n", "line 2"),
        ("conversation_id,room,room_turn\na,b,-1\n", "line 2"),
        ("conversation_id,room,room_turn\na,b,1.5\n", "line 2"),
        ("conversation_id,room,room_turn\na,b,0\na,c,0\n", "named twice"),
    ],
)
def test_a_wrong_plan_says_where(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        parse_rooms(text)

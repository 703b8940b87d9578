"""Room and turn of every record.

A *room* is one call, which may hold several conversations: the rooms plan says
which conversation belongs to which room and at which turn of the room it
starts. Without a plan a room is one replay of a conversation.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from serving_bench.analyze.arrays import Bools, Ints
from serving_bench.analyze.records import Records

_TURN = re.compile(r"[0-9]{1,6}")
ROOMS_HEADER = ["conversation_id", "room", "room_turn"]


@dataclass(frozen=True)
class RoomStart:
    """Where a conversation begins: its room, and the room's turn at that moment."""

    room: str
    turn: int


RoomsPlan = Mapping[str, RoomStart]


@dataclass(frozen=True)
class Turns:
    """Per record: number of its room (0…rooms-1) and its turn in the room."""

    room: Ints
    turn: Ints
    rooms: int
    outside_plan: int
    """Records whose conversation the rooms plan does not know."""

    @property
    def first(self) -> Bools:
        return np.equal(self.turn, 0)

    @property
    def later(self) -> Bools:
        return np.greater(self.turn, 0)


def parse_rooms(text: str) -> RoomsPlan:
    """Parse a rooms plan; ``ValueError`` says which line is wrong."""
    reader = csv.reader(io.StringIO(text, newline=""))
    header = next(_rows(reader), [])
    if header != ROOMS_HEADER:
        raise ValueError(f"line 1: expected {','.join(ROOMS_HEADER)}, found {','.join(header)[:80]!r}")
    plan: dict[str, RoomStart] = {}
    for row in _rows(reader):
        if len(row) != len(ROOMS_HEADER) or not _TURN.fullmatch(row[2]):
            raise ValueError(f"line {reader.line_num}: expected an id, a room and a whole number, found {row!r:.80}")
        if row[0] in plan:
            raise ValueError(f"line {reader.line_num}: conversation {row[0]!r:.80} is named twice")
        plan[row[0]] = RoomStart(row[1], int(row[2]))
    return plan


def _rows(reader: Iterable[list[str]]) -> Iterator[list[str]]:
    """The rows; what csv itself cannot read is a ``ValueError`` too."""
    try:
        yield from reader
    except csv.Error as error:
        raise ValueError(str(error)) from error


def assign(records: Records, plan: RoomsPlan | None) -> Turns:
    """Give every record its room and turn."""
    numbers: dict[str, int] = {}
    rooms = np.empty(records.n, dtype=np.int64)
    turns = records.turn_index.copy()
    outside = 0
    for index, (conversation, correlation) in enumerate(zip(records.conversation, records.correlation, strict=True)):
        start = plan.get(conversation) if plan is not None else None
        if start is None:
            outside += plan is not None
            name = f"replay {correlation}"
        else:
            name = f"room {start.room}"
            turns[index] += start.turn
        rooms[index] = numbers.setdefault(name, len(numbers))
    return Turns(rooms, turns, len(numbers), outside)

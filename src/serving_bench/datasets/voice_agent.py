"""Deterministic generator of voice-agent conversations.

A *room* is one call: a caller talks to an agent and may be handed over to a
second agent, which starts a second conversation in the same room (another
system prompt, the turn count of the room goes on). Every room of an agent
shares that agent's long system prompt, as a fleet of voice agents does.

The output is byte-identical wherever it is made: the only source of randomness
is ``random.Random(seed).random()``, whose sequence Python guarantees across
versions and platforms, and all text is ASCII.
"""

from __future__ import annotations

import csv
import io
import json
import random
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, model_validator

from serving_bench.datasets import phrases

_SLOT = re.compile(r"\{(\w+)\}")


class VoiceAgentArguments(BaseModel):
    """Arguments of the generator, as the dataset lock records them."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    seed: int = 1
    agents: int = Field(default=3, ge=1, le=len(phrases.AGENTS))
    rooms: int = Field(default=48, ge=1, le=100_000)
    warmup_rooms: int = Field(default=5, ge=0, le=1_000)
    """One more than the warm-up plays: aiperf draws a conversation ahead at the
    end of each phase and drops it, so that without the spare one the load
    would miss its first conversation and come round to a warm-up one."""
    min_turns: int = Field(default=3, ge=1, le=200)
    max_turns: int = Field(default=8, ge=1, le=200)
    prompt_rules: int = Field(default=48, ge=1, le=2_000)
    """Rules in an agent's system prompt; one rule is about 20 words."""
    record_notes: int = Field(default=60, ge=0, le=2_000)
    """Notes about the caller in the first message of a room; one is about 10 words."""
    handover_every: int = Field(default=6, ge=0)
    """Every n-th room is handed over to a second agent, but for the last ``handover_lag``; 0: none is."""
    handover_lag: int = Field(default=12, ge=1)
    """Conversations between the two of a handed-over room in the file, so that
    a replay at a concurrency up to this starts the second after the first."""
    min_output_tokens: int = Field(default=16, ge=1)
    max_output_tokens: int = Field(default=48, ge=1)

    @model_validator(mode="after")
    def _ordered(self) -> VoiceAgentArguments:
        if self.min_turns > self.max_turns:
            raise ValueError("min_turns is greater than max_turns")
        if self.min_output_tokens > self.max_output_tokens:
            raise ValueError("min_output_tokens is greater than max_output_tokens")
        return self


@dataclass(frozen=True)
class Generated:
    """Conversations for aiperf (``multi_turn`` JSONL) and the rooms plan (CSV).

    The plan has a row per conversation: ``conversation_id,room,room_turn``,
    where ``room_turn`` is the turn of the room with which the conversation
    starts. The first ``warmup_conversations`` lines of the JSONL are meant for
    the warm-up phase and share no caller with the rest.
    """

    conversations: bytes
    rooms: bytes
    warmup_conversations: int
    conversation_count: int
    request_count: int


class _Draw:
    """The few draws the generator needs, built on ``random()`` alone."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def integer(self, low: int, high: int) -> int:
        """A whole number from low to high, both included."""
        return low + int(self._random.random() * (high - low + 1))

    def pick(self, items: Sequence[str]) -> str:
        return items[self.integer(0, len(items) - 1)]


@dataclass(frozen=True)
class _Conversation:
    id: str
    room: str
    room_turn: int
    turns: list[dict[str, Any]]

    @property
    def requests(self) -> int:
        return len(self.turns) - 1


def _sentence(draw: _Draw, template: str) -> str:
    """Fill each ``{slot}`` of a template with a draw of its own."""
    return _SLOT.sub(lambda slot: draw.pick(phrases.SLOTS[slot[1]]), template)


def _system_prompt(draw: _Draw, agent: int, rules: int) -> str:
    name, duty = phrases.AGENTS[agent]
    lines = [f"You are {name}, a voice agent. {duty}", "Follow these rules at all times."]
    lines += [f"{n}. {_sentence(draw, draw.pick(phrases.RULES))}" for n in range(1, rules + 1)]
    return "\n".join(lines)


def _turns(draw: _Draw, args: VoiceAgentArguments, prompt: str, opening: str, count: int) -> list[dict[str, Any]]:
    turns: list[dict[str, Any]] = [{"role": "system", "text": prompt}]
    for index in range(count):
        said = [_sentence(draw, draw.pick(phrases.CALLER)) for _ in range(draw.integer(1, 3))]
        if index == 0:
            said.insert(0, opening)
        tokens = draw.integer(args.min_output_tokens, args.max_output_tokens)
        turns.append({"role": "user", "text": " ".join(said), "output_length": tokens})
    return turns


def _record(draw: _Draw, args: VoiceAgentArguments, caller: str, room: str) -> str:
    """What is known of the caller: the part of a first prompt that no other room shares."""
    notes = [f"- {_sentence(draw, draw.pick(phrases.RECORD))}" for _ in range(args.record_notes)]
    return "\n".join([f"Record of {caller}, reference {room}:", *notes])


def _is_handed_over(args: VoiceAgentArguments, number: int) -> bool:
    """Every n-th room, as long as enough rooms follow to keep its two conversations apart."""
    every = args.handover_every
    return every > 0 and number % every == every - 1 and number + args.handover_lag < args.rooms


def _room(draw: _Draw, args: VoiceAgentArguments, prompts: list[str], number: int, room: str) -> list[_Conversation]:
    """The one or two conversations of a room."""
    agent = draw.integer(0, args.agents - 1)
    count = draw.integer(args.min_turns, args.max_turns)
    caller = f"{draw.pick(phrases.FIRST_NAMES)} {draw.pick(phrases.LAST_NAMES)}"
    opening = f"{_record(draw, args, caller, room)}\nHello, this is {caller}, reference {room}."
    handed_over = _is_handed_over(args, number) and count > 1
    head = count - count // 2 if handed_over else count
    parts = [_Conversation(f"{room}-a", room, 0, _turns(draw, args, prompts[agent], opening, head))]
    if handed_over:
        other = prompts[(agent + 1) % args.agents]
        note = f"Handed over from {phrases.AGENTS[agent][0]}: {caller}, reference {room}."
        parts.append(_Conversation(f"{room}-b", room, head, _turns(draw, args, other, note, count - head)))
    return parts


def _in_order(rooms: list[list[_Conversation]], lag: int) -> list[_Conversation]:
    """File order: second conversations wait ``lag`` places behind the first."""
    ordered: list[_Conversation] = []
    waiting: list[tuple[int, _Conversation]] = []
    for first, *rest in rooms:
        while waiting and waiting[0][0] <= len(ordered):
            ordered.append(waiting.pop(0)[1])
        ordered.append(first)
        waiting += [(len(ordered) - 1 + lag, later) for later in rest]
    return ordered + [later for _, later in waiting]


def generate(args: VoiceAgentArguments) -> Generated:
    """Make the conversations and the rooms plan that ``args`` describe."""
    draw = _Draw(args.seed)
    prompts = [_system_prompt(draw, agent, args.prompt_rules) for agent in range(args.agents)]
    # Warm-up rooms are never handed over: each of them is one conversation.
    calm = args.model_copy(update={"handover_every": 0})
    warmup = [_room(draw, calm, prompts, n, f"warmup-{n:03d}")[0] for n in range(args.warmup_rooms)]
    rooms = [_room(draw, args, prompts, n, f"room-{n:05d}") for n in range(args.rooms)]
    ordered = warmup + _in_order(rooms, args.handover_lag)
    lines = [json.dumps({"session_id": c.id, "turns": c.turns}, separators=(",", ":")) for c in ordered]
    plan = io.StringIO(newline="")
    writer = csv.writer(plan, lineterminator="\n")
    writer.writerow(["conversation_id", "room", "room_turn"])
    writer.writerows([c.id, c.room, c.room_turn] for c in ordered)
    return Generated(
        conversations="".join(line + "\n" for line in lines).encode("ascii"),
        rooms=plan.getvalue().encode("ascii"),
        warmup_conversations=len(warmup),
        conversation_count=len(ordered) - len(warmup),
        request_count=sum(c.requests for c in ordered[len(warmup) :]),
    )

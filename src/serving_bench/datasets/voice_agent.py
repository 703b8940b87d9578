"""Deterministic generator of voice-agent conversations.

A *room* is one call: a caller talks to an agent and may be handed over to a
second agent, which starts a second conversation in the same room (another
system prompt, the turn count of the room goes on). Every room of an agent
shares that agent's long system prompt, as a fleet of voice agents does. An
agent may answer a turn with the call of a tool; the result is a turn of its
own, in words: aiperf's ``multi_turn`` format carries text, a role and a delay
for each turn, and neither tool calls nor tool definitions.

The output is byte-identical wherever it is made: the only source of randomness
is ``random.Random(seed).random()``, whose sequence Python guarantees across
versions and platforms, and all text is ASCII. An argument at its default draws
nothing, so that datasets locked before it was there stay as they are.
"""

from __future__ import annotations

import csv
import io
import json
from dataclasses import dataclass
from typing import Any

from serving_bench.datasets import phrases
from serving_bench.datasets.voice_arguments import VoiceAgentArguments
from serving_bench.datasets.voice_text import Draw, caller_turn, record, system_prompt, tool_result

_WARMUP_SEED = 1_000_003
"""Added to the seed for warm-up rooms that must not change the draws of the others."""


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


@dataclass(frozen=True)
class _Conversation:
    id: str
    room: str
    room_turn: int
    turns: list[dict[str, Any]]

    @property
    def requests(self) -> int:
        return len(self.turns) - 1


@dataclass(frozen=True)
class _Agent:
    number: int
    prompt: str


def _agents(draw: Draw, args: VoiceAgentArguments) -> list[_Agent]:
    found = []
    for number in range(args.agents):
        most = args.max_prompt_rules
        rules = args.prompt_rules if most is None else draw.integer(args.prompt_rules, most)
        found.append(_Agent(number, system_prompt(draw, number, rules, args.tools)))
    return found


def _turns(
    draw: Draw, args: VoiceAgentArguments, agent: _Agent, *, opening: str, count: int, room: str
) -> list[dict[str, Any]]:
    """The system prompt, then ``count`` turns of the caller with the results of tools between them."""
    turns: list[dict[str, Any]] = [{"role": "system", "text": agent.prompt}]
    for index in range(count):
        said = caller_turn(draw)
        if index == 0:
            said.insert(0, opening)
        turn = _turn(draw, " ".join(said), args.min_output_tokens, args.max_output_tokens)
        if index and args.max_pause_ms:
            turn["delay"] = draw.integer(args.min_pause_ms, args.max_pause_ms)
        turns.append(turn)
        if args.tools and args.tool_share and draw.chance(args.tool_share):
            turn["output_length"] = draw.integer(args.min_call_tokens, args.max_call_tokens)
            result = tool_result(draw, agent.number, args.tools, room)
            turns.append(_turn(draw, result, args.min_output_tokens, args.max_output_tokens))
            if args.max_tool_ms:
                turns[-1]["delay"] = draw.integer(args.min_tool_ms, args.max_tool_ms)
    return turns


def _turn(draw: Draw, text: str, least: int, most: int) -> dict[str, Any]:
    return {"role": "user", "text": text, "output_length": draw.integer(least, most)}


def _is_handed_over(args: VoiceAgentArguments, number: int) -> bool:
    """Every n-th room, as long as enough rooms follow to keep its two conversations apart."""
    every = args.handover_every
    return every > 0 and number % every == every - 1 and number + args.handover_lag < args.rooms


def _count(draw: Draw, args: VoiceAgentArguments, number: int) -> int:
    """Turns of the caller in a room."""
    every = args.long_every
    if every and number % every == every // 2:
        return draw.integer(args.min_long_turns, args.max_long_turns)
    return draw.integer(args.min_turns, args.max_turns)


def _room(
    draw: Draw, args: VoiceAgentArguments, agents: list[_Agent], number: int, room: str, *, agent: int | None = None
) -> list[_Conversation]:
    """The one or two conversations of a room, with the agent given or with one drawn."""
    chosen = agents[draw.integer(0, args.agents - 1) if agent is None else agent]
    count = _count(draw, args, number)
    caller = f"{draw.pick(phrases.FIRST_NAMES)} {draw.pick(phrases.LAST_NAMES)}"
    opening = f"{record(draw, args.record_notes, caller, room)}\nHello, this is {caller}, reference {room}."
    handed_over = _is_handed_over(args, number) and count > 1
    head = count - count // 2 if handed_over else count
    parts = [_Conversation(f"{room}-a", room, 0, _turns(draw, args, chosen, opening=opening, count=head, room=room))]
    if handed_over:
        other = agents[(chosen.number + 1) % args.agents]
        note = f"Handed over from {phrases.AGENTS[chosen.number][0]}: {caller}, reference {room}."
        if args.handover_notes:
            note = f"{note}\n{record(draw, args.handover_notes, caller, room)}"
        at = parts[0].requests
        parts.append(
            _Conversation(f"{room}-b", room, at, _turns(draw, args, other, opening=note, count=count - head, room=room))
        )
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


def _warmup(draw: Draw, args: VoiceAgentArguments, agents: list[_Agent]) -> list[_Conversation]:
    """Warm-up rooms are never handed over: each of them is one conversation."""
    calm: dict[str, Any] = {"handover_every": 0}
    if args.warmup_each_agent:
        draw = Draw(args.seed + _WARMUP_SEED)
        calm |= {"min_turns": 1, "max_turns": 1, "long_every": 0, "tool_share": 0.0}
    calm_args = args.model_copy(update=calm)
    return [
        _room(draw, calm_args, agents, n, f"warmup-{n:03d}", agent=n % args.agents if args.warmup_each_agent else None)[
            0
        ]
        for n in range(args.warmup_rooms)
    ]


def generate(args: VoiceAgentArguments) -> Generated:
    """Make the conversations and the rooms plan that ``args`` describe."""
    draw = Draw(args.seed)
    agents = _agents(draw, args)
    warmup = _warmup(draw, args, agents)
    rooms = [_room(draw, args, agents, n, f"room-{n:05d}") for n in range(args.rooms)]
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

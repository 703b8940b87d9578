"""The texts of the voice-agent generator, and the one source of randomness they are drawn from."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Sequence

from serving_bench.datasets import phrases

_SLOT = re.compile(r"\{(\w+)\}")


class Draw:
    """The few draws the generator needs, built on ``random()`` alone."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def integer(self, low: int, high: int) -> int:
        """A whole number from low to high, both included."""
        return low + int(self._random.random() * (high - low + 1))

    def chance(self, share: float) -> bool:
        return self._random.random() < share

    def pick(self, items: Sequence[str]) -> str:
        return items[self.integer(0, len(items) - 1)]


def sentence(draw: Draw, template: str) -> str:
    """Fill each ``{slot}`` of a template with a draw of its own."""
    return _SLOT.sub(lambda slot: draw.pick(phrases.SLOTS[slot[1]]), template)


def system_prompt(draw: Draw, agent: int, rules: int, tools: int) -> str:
    """Who the agent is, its rules and, where it has any, its tools and how it calls them."""
    name, duty = phrases.AGENTS[agent]
    lines = [f"You are {name}, a voice agent. {duty}", "Follow these rules at all times."]
    lines += [f"{n}. {sentence(draw, draw.pick(phrases.RULES))}" for n in range(1, rules + 1)]
    if tools:
        lines += ["To use a tool, answer with CALL, its name and its arguments as JSON, and nothing else.", "Tools:"]
        lines += [_tool(agent + number) for number in range(tools)]
    return "\n".join(lines)


def _tool(number: int) -> str:
    """A tool as the prompt describes it: one line of JSON in the form of a function schema."""
    name, purpose, slots = phrases.TOOLS[number % len(phrases.TOOLS)]
    properties = {slot: {"type": "string", "description": f"the {slot} as the caller said it"} for slot in slots}
    parameters = {"type": "object", "properties": properties, "required": list(slots[:1])}
    return json.dumps({"name": name, "description": purpose, "parameters": parameters})


def tool_result(draw: Draw, agent: int, tools: int, reference: str) -> str:
    """A call of one of the agent's tools, and what came back: 2 to 6 items as JSON."""
    name, _, slots = phrases.TOOLS[(agent + draw.integer(0, tools - 1)) % len(phrases.TOOLS)]
    given = {slot: reference if slot == "reference" else draw.pick(phrases.SLOTS[slot]) for slot in slots}
    items = [
        {slot: draw.pick(phrases.SLOTS[slot]) for slot in ("thing", "day", "time", "place", "amount")}
        for _ in range(draw.integer(2, 6))
    ]
    answer = {"status": "ok", "reference": reference, "items": items}
    return f"RESULT of {name}({json.dumps(given)}):\n{json.dumps(answer)}"


def record(draw: Draw, notes: int, caller: str, room: str) -> str:
    """What is known of the caller: the part of a first prompt that no other room shares."""
    lines = [f"- {sentence(draw, draw.pick(phrases.RECORD))}" for _ in range(notes)]
    return "\n".join([f"Record of {caller}, reference {room}:", *lines])


def caller_turn(draw: Draw) -> list[str]:
    """One to three sentences of a caller."""
    return [sentence(draw, draw.pick(phrases.CALLER)) for _ in range(draw.integer(1, 3))]

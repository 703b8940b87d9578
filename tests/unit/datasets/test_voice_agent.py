from __future__ import annotations

import csv
import hashlib
import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
import yaml

from serving_bench.datasets.generators import run_generator
from serving_bench.datasets.voice_agent import Generated, generate
from serving_bench.datasets.voice_arguments import VoiceAgentArguments
from serving_bench.errors import InputError

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def demo() -> Generated:
    return generate(VoiceAgentArguments())


def conversations(made: Generated) -> list[dict[str, Any]]:
    return [json.loads(line) for line in made.conversations.splitlines()]


def plan_rows(made: Generated) -> list[dict[str, str]]:
    return list(csv.DictReader(made.rooms.decode().splitlines()))


def test_the_committed_lock_is_what_the_generator_makes() -> None:
    lock = yaml.safe_load((ROOT / "configs" / "datasets.lock.yaml").read_text())["datasets"]["voice-agent-demo"]
    made = run_generator(lock["generator"], lock["arguments"])
    assert hashlib.sha256(made.conversations).hexdigest() == lock["sha256"]
    assert hashlib.sha256(made.rooms).hexdigest() == lock["rooms-sha256"]
    assert len(made.conversations) == lock["bytes"]


def test_the_committed_scenario_plays_every_conversation_once(demo: Generated) -> None:
    scenario = yaml.safe_load((ROOT / "configs" / "scenarios.yaml").read_text())["scenarios"]["voice-agent-demo"]
    assert scenario["warmup"] == {"conversations": demo.warmup_conversations - 1}, "one is drawn ahead and dropped"
    assert scenario["load"] == {"conversations": demo.conversation_count}
    assert len(conversations(demo)) == demo.warmup_conversations + demo.conversation_count


def test_48_rooms_of_3_to_8_turns(demo: Generated) -> None:
    turns: dict[str, int] = defaultdict(int)
    rows = {row["conversation_id"]: row for row in plan_rows(demo)}
    for conversation in conversations(demo):
        row = rows[conversation["session_id"]]
        assert int(row["room_turn"]) == turns[row["room"]] or row["room_turn"] == "0"
        turns[row["room"]] += sum(turn["role"] == "user" for turn in conversation["turns"])
    rooms = {room: count for room, count in turns.items() if room.startswith("room-")}
    assert len(rooms) == 48
    assert set(rooms.values()) <= set(range(3, 9))
    assert sum(rooms.values()) == demo.request_count


def test_handed_over_rooms_have_two_conversations_with_another_agent(demo: Generated) -> None:
    by_room: dict[str, list[tuple[int, str]]] = defaultdict(list)
    prompts = {c["session_id"]: c["turns"][0]["text"] for c in conversations(demo)}
    for row in plan_rows(demo):
        by_room[row["room"]].append((int(row["room_turn"]), prompts[row["conversation_id"]]))
    pairs = [entries for entries in by_room.values() if len(entries) == 2]
    assert len(pairs) == 6
    for (first_turn, first_prompt), (second_turn, second_prompt) in pairs:
        assert first_turn == 0
        assert second_turn > 0
        assert first_prompt != second_prompt


def test_the_second_conversation_waits_in_the_file(demo: Generated) -> None:
    order = [c["session_id"] for c in conversations(demo)]
    for name in order:
        if name.endswith("-b"):
            assert order.index(name) - order.index(name[:-1] + "a") >= 8, (
                "later than the highest concurrency of the demo"
            )


def test_rooms_of_an_agent_share_its_prompt_and_warmup_shares_no_caller(demo: Generated) -> None:
    made = conversations(demo)
    assert {c["turns"][0]["role"] for c in made} == {"system"}
    assert len({c["turns"][0]["text"] for c in made}) == 3
    openings = [c["turns"][1]["text"] for c in made]
    assert len(set(openings)) == len(openings)
    assert [c["session_id"].startswith("warmup-") for c in made] == [True] * 5 + [False] * 54


def test_arguments_change_the_content_and_the_seed_does_too() -> None:
    base = VoiceAgentArguments(rooms=3, warmup_rooms=0)
    digests = {
        hashlib.sha256(generate(args).conversations).hexdigest()
        for args in (
            base,
            base.model_copy(update={"seed": 2}),
            base.model_copy(update={"agents": 2}),
            base.model_copy(update={"prompt_rules": 3}),
        )
    }
    assert len(digests) == 4
    assert generate(base).conversations == generate(base).conversations


@pytest.mark.parametrize(
    ("arguments", "code"),
    [({"rooms": 0}, "SB-LOCK-ARGUMENTS"), ({"seats": 1}, "SB-LOCK-ARGUMENTS"), ({"min_turns": 9}, "SB-LOCK-ARGUMENTS")],
)
def test_wrong_arguments_are_told(arguments: dict[str, int], code: str) -> None:
    with pytest.raises(InputError) as caught:
        run_generator("voice-agent", arguments)
    assert caught.value.code == code


def test_an_unknown_generator_is_told() -> None:
    with pytest.raises(InputError, match="known: voice-agent"):
        run_generator("magic", {})

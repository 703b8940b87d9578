"""The big voice-agent workload: what it is made of, and whether it is enough for what the configs ask of it."""

from __future__ import annotations

import csv
import hashlib
import json
import statistics
from pathlib import Path
from typing import Any

import pytest
import yaml

from serving_bench.config.loader import load
from serving_bench.datasets.generators import run_generator
from serving_bench.datasets.voice_agent import Generated, generate
from serving_bench.datasets.voice_arguments import VoiceAgentArguments
from serving_bench.errors import InputError

ROOT = Path(__file__).resolve().parents[3]
LOCK = yaml.safe_load((ROOT / "configs/datasets.lock.yaml").read_text())["datasets"]
COLD, WARM = LOCK["voice-agent-calls-v1"], LOCK["voice-agent-calls-v1-warm"]
FEW = {"rooms": 120, "handover_lag": 20}

Conversation = dict[str, Any]


def read(made: Generated) -> list[Conversation]:
    return [json.loads(line) for line in made.conversations.splitlines()]


@pytest.fixture(scope="module")
def whole() -> Generated:
    return run_generator(WARM["generator"], WARM["arguments"])


@pytest.fixture(scope="module")
def calls(whole: Generated) -> list[Conversation]:
    return read(whole)


@pytest.fixture(scope="module")
def few() -> list[Conversation]:
    return read(run_generator("voice-agent", COLD["arguments"] | FEW))


def test_the_warm_variant_is_as_locked(whole: Generated) -> None:
    assert hashlib.sha256(whole.conversations).hexdigest() == WARM["sha256"]
    assert hashlib.sha256(whole.rooms).hexdigest() == WARM["rooms-sha256"]
    assert len(whole.conversations) == WARM["bytes"]


def test_the_cold_variant_is_the_warm_one_without_its_beginning(whole: Generated) -> None:
    first, arguments = WARM["arguments"]["warmup_rooms"], dict(WARM["arguments"])
    assert arguments.pop("warmup_each_agent")
    assert arguments | {"warmup_rooms": 0} == COLD["arguments"]
    rest = b"".join(whole.conversations.splitlines(keepends=True)[first:])
    assert hashlib.sha256(rest).hexdigest() == COLD["sha256"]
    assert len(rest) == COLD["bytes"]
    head, *rows = whole.rooms.splitlines(keepends=True)
    assert hashlib.sha256(head + b"".join(rows[first:])).hexdigest() == COLD["rooms-sha256"]


def test_the_warm_up_plays_every_agents_prompt_and_no_call(whole: Generated, calls: list[Conversation]) -> None:
    scenario = yaml.safe_load((ROOT / "configs/scenarios.yaml").read_text())["scenarios"]["livekit"]
    played = scenario["warmup"]["conversations"]
    assert played == whole.warmup_conversations - 1, "one is drawn ahead and dropped"
    warmup, rest = calls[: whole.warmup_conversations], calls[whole.warmup_conversations :]
    prompts = {call["turns"][0]["text"] for call in rest}
    assert len(prompts) == 12
    counts = [sum(call["turns"][0]["text"] == prompt for call in warmup[:played]) for prompt in prompts]
    assert counts == [4] * 12
    assert all(call["session_id"].startswith("warmup-") and len(call["turns"]) == 2 for call in warmup)
    assert not {call["turns"][1]["text"] for call in warmup} & {call["turns"][1]["text"] for call in rest}


def test_it_does_not_come_round_in_the_longest_load_of_the_configs(calls: list[Conversation]) -> None:
    plans = [plan for plan in load(ROOT / "configs").plans if plan.scenario.dataset.id == "voice-agent-calls-v1-warm"]
    assert len(plans) == 5
    calm = [sum(turn.get("delay", 0) for turn in call["turns"]) / 1_000 for call in calls[49:]]
    for plan in plans:
        assert plan.scenario.unique_prompts
        duration = plan.scenario.load.duration_s
        assert duration is not None
        # As many as could be started if answers took no time: pauses alone make a call last.
        started = max(plan.conc) * (1 + duration / statistics.mean(calm))
        assert started < len(calm)


def test_no_two_first_prompts_are_alike(calls: list[Conversation]) -> None:
    firsts = [call["turns"][0]["text"] + call["turns"][1]["text"] for call in calls]
    assert len(set(firsts)) == len(firsts)


def test_prompts_are_long_and_of_different_length(few: list[Conversation]) -> None:
    # With a vocabulary of 130,000 a token is 4.13 characters of this text: 2 to 6 thousand tokens.
    lengths = sorted(len(prompt) for prompt in {call["turns"][0]["text"] for call in few})
    assert len(lengths) == 12
    assert 2_000 * 4.13 <= lengths[0] < 2_500 * 4.13
    assert 5_500 * 4.13 < lengths[-1] <= 6_000 * 4.13


def test_tools_are_described_called_and_answered(few: list[Conversation]) -> None:
    turns = [turn for call in few for turn in call["turns"]]
    results = [turn for turn in turns if turn["text"].startswith("RESULT of ")]
    callers = [turn for turn in turns if turn["role"] == "user" and turn not in results]
    assert 0.3 < len(results) / len(callers) < 0.4
    for turn in results:
        call, answer = turn["text"].split("\n")
        assert json.loads(answer)["status"] == "ok"
        assert json.loads(call.partition("(")[2].removesuffix("):"))
        assert 80 <= turn["delay"] <= 600
    for conversation in few:
        texts = [turn["text"] for turn in conversation["turns"]]
        described = {json.loads(line)["name"] for line in texts[0].splitlines() if line.startswith('{"name"')}
        assert len(described) == 6
        used = {text.removeprefix("RESULT of ").partition("(")[0] for text in texts if text.startswith("RESULT of ")}
        assert used <= described
        for before, after in zip(conversation["turns"], conversation["turns"][1:], strict=False):
            if after["text"].startswith("RESULT of "):
                assert 12 <= before["output_length"] <= 28, "the answer before a result is the call"


def test_callers_pause_but_not_before_their_first_words(few: list[Conversation]) -> None:
    for conversation in few:
        assert "delay" not in conversation["turns"][0]
        assert "delay" not in conversation["turns"][1]
        for turn in conversation["turns"][2:]:
            low, high = (80, 600) if turn["text"].startswith("RESULT of ") else (1_500, 6_000)
            assert low <= turn["delay"] <= high


def test_every_tenth_room_is_long_and_every_eighth_is_handed_over(few: list[Conversation]) -> None:
    rooms: dict[int, list[Conversation]] = {}
    for call in few:
        rooms.setdefault(int(call["session_id"].split("-")[1]), []).append(call)
    for number, parts in rooms.items():
        turns = [turn for part in parts for turn in part["turns"] if turn["role"] == "user"]
        count = sum(not turn["text"].startswith("RESULT of ") for turn in turns)
        assert (40 <= count <= 64) if number % 10 == 5 else (8 <= count <= 24)
        assert len(parts) == (2 if number % 8 == 7 and number + 20 < 120 else 1)
        if len(parts) == 2:
            assert "Record of " in parts[1]["turns"][1]["text"]
            assert parts[0]["turns"][0]["text"] != parts[1]["turns"][0]["text"]


def test_the_rooms_plan_counts_results_as_turns() -> None:
    made = run_generator("voice-agent", COLD["arguments"] | FEW)
    lengths = {call["session_id"]: len(call["turns"]) - 1 for call in read(made)}
    for row in csv.DictReader(made.rooms.decode().splitlines()):
        before = lengths[row["conversation_id"][:-1] + "a"] if row["conversation_id"].endswith("-b") else 0
        assert int(row["room_turn"]) == before


def test_only_what_aiperf_carries_is_in_the_turns(few: list[Conversation]) -> None:
    keys = {key for call in few for turn in call["turns"] for key in turn}
    assert keys == {"role", "text", "output_length", "delay"}
    assert {turn["role"] for call in few for turn in call["turns"][1:]} == {"user"}


@pytest.mark.parametrize(
    "arguments",
    [
        {"prompt_rules": 10, "max_prompt_rules": 9},
        {"min_pause_ms": 5, "max_pause_ms": 4},
        {"min_long_turns": 9, "max_long_turns": 8},
        {"tools": 9},
        {"tool_share": 1.1},
        {"agents": 13},
    ],
)
def test_arguments_that_cannot_be_are_told(arguments: dict[str, Any]) -> None:
    with pytest.raises(InputError) as caught:
        run_generator("voice-agent", arguments)
    assert caught.value.code == "SB-LOCK-ARGUMENTS"


def test_each_new_argument_changes_the_content() -> None:
    base = {"rooms": 12, "warmup_rooms": 2, "prompt_rules": 5, "record_notes": 3, "handover_lag": 3}
    changes: list[dict[str, Any]] = [
        {"max_prompt_rules": 50},
        {"tools": 3},
        {"tools": 3, "tool_share": 0.5},
        {"tools": 3, "tool_share": 0.5, "max_tool_ms": 9},
        {"max_pause_ms": 9},
        {"handover_notes": 2},
        {"long_every": 4},
        {"warmup_each_agent": True},
    ]
    plain = generate(VoiceAgentArguments.model_validate(base)).conversations
    made = [generate(VoiceAgentArguments.model_validate(base | change)).conversations for change in changes]
    assert len({plain, *made}) == len(changes) + 1

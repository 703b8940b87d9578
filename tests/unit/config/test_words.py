from __future__ import annotations

import shlex
import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from serving_bench.config import words


def test_words_are_split_as_a_shell_does() -> None:
    command = """python3 -m dynamo.vllm --x '{"a": "$b | c"}' --y="two words" \\\n  --z a\\ b"""
    assert words.split(command) == [
        "python3", "-m", "dynamo.vllm", "--x", '{"a": "$b | c"}', "--y=two words", "--z", "a b",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "command",
    ["a $B", 'a "$B"', "a `b`", 'a "`b`"', "a | b", "a; b", "a && b", "a > b", "a < b", "(a)", "a # b", "# b", "$(a)"],
)
def test_what_needs_a_shell_is_refused(command: str) -> None:
    with pytest.raises(words.WordError, match="not run by a shell"):
        words.split(command)


@pytest.mark.parametrize("command", ["a 'b", 'a "b', 'a "b\\', "a \\"])
def test_quotes_that_do_not_close(command: str) -> None:
    with pytest.raises(words.WordError, match=r"do not close|ends with a backslash"):
        words.split(command)


def test_an_empty_command() -> None:
    with pytest.raises(words.WordError, match="empty"):
        words.split("  ")


def test_characters_that_only_look_special_are_kept() -> None:
    assert words.split('a \'$B\' \\$C b#c "a|b" "\\$D"') == ["a", "$B", "$C", "b#c", "a|b", "$D"]


@given(st.lists(st.text(alphabet=st.characters(codec="ascii"), max_size=12), min_size=1, max_size=6))
def test_quoted_words_come_back(expected: list[str]) -> None:
    assert words.split(shlex.join(expected)) == expected


def by_a_shell(command: str) -> list[str]:
    """The words that a real shell makes of it; globs are off, as we do not expand them."""
    script = f"set -f; printf '%s\\0' {command}"
    done = subprocess.run(["sh", "-c", script], capture_output=True, check=True, text=True)
    return done.stdout.split("\0")[:-1]


@settings(max_examples=150, deadline=None)
@given(st.text(alphabet="ab #'\"\\\t=*{}~!", min_size=1, max_size=12).map("w ".__add__))
def test_a_real_shell_splits_the_same(command: str) -> None:
    try:
        found = words.split(command)
    except words.WordError:
        return  # what is refused is listed above
    if not any(word.startswith("~") for word in found):  # a home folder is a substitution
        assert found == by_a_shell(command)

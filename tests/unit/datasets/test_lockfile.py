"""Entries of the lock changed as text."""

from __future__ import annotations

import string

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from serving_bench.datasets.lockfile import with_entry
from serving_bench.errors import InputError

LOCK = """\
# What every dataset must be.
datasets:
  first:  # a comment beside it
    description: |
      two
      lines

    repo: org/first
    revision: aaaa  # the old one
    file: calls.jsonl
    sha256: '00'
  # before the second
  second: {path: x.jsonl, sha256: "11"}

  third:
    sha256: "22"
    arguments:
      seed: 1
      list:
        - 1
# the end
"""


def test_values_are_changed_in_their_place() -> None:
    changed = with_entry(LOCK, "first", {"revision": "bbbb", "sha256": "ff"})
    assert changed == LOCK.replace("aaaa", "bbbb").replace("'00'", "ff")


def test_new_keys_come_after_the_last_one() -> None:
    changed = with_entry(LOCK, "first", {"bytes": 7, "revision": "bbbb"})
    assert changed == LOCK.replace("aaaa", "bbbb").replace("    sha256: '00'\n", "    sha256: '00'\n    bytes: 7\n")
    changed = with_entry(LOCK, "third", {"bytes": 7})
    assert changed == LOCK.replace("        - 1\n", "        - 1\n    bytes: 7\n")


def test_an_entry_in_braces_stays_one() -> None:
    changed = with_entry(LOCK, "second", {"sha256": "ff", "bytes": 7})
    assert changed == LOCK.replace('{path: x.jsonl, sha256: "11"}', "{path: x.jsonl, sha256: ff, bytes: 7}")


def test_an_entry_is_added_after_the_last_one() -> None:
    changed = with_entry(LOCK, "fourth", {"repo": "org/fourth", "bytes": 7})
    added = "  fourth:\n    repo: org/fourth\n    bytes: 7\n"
    assert changed == LOCK.replace("        - 1\n", f"        - 1\n{added}")


def test_the_first_entry_of_an_empty_lock() -> None:
    assert with_entry("datasets: {}\n", "a", {"bytes": 1}) == "datasets:\n  a:\n    bytes: 1\n"


@pytest.mark.parametrize("ending", ["", "\n", "\r\n"])
def test_line_ends_stay_as_they_are(ending: str) -> None:
    newline = ending or "\n"
    text = newline.join(["datasets:", "  a:", "    sha256: x"]) + ending
    assert with_entry(text, "a", {"bytes": 1}) == text + ("" if ending else "\n") + f"    bytes: 1{newline}"


def test_a_value_that_yaml_would_read_as_another_is_quoted() -> None:
    changed = with_entry(LOCK, "first", {"revision": "1234567890", "sha256": "1" * 64, "file": "a: b #c"})
    entry = yaml.safe_load(changed)["datasets"]["first"]
    assert (entry["revision"], entry["sha256"], entry["file"]) == ("1234567890", "1" * 64, "a: b #c")


def test_a_value_that_another_entry_refers_to_is_not_changed() -> None:
    with pytest.raises(InputError) as caught:
        with_entry("datasets: {a: {sha256: &x v}, b: {sha256: *x}}\n", "a", {"sha256": "w"})
    assert caught.value.code == "SB-LOCK-EDIT"


@pytest.mark.parametrize(
    "text", ["", "[", "datasets: 1\n", "datasets: {b: {c: d}}\n", "sets: {a: {b: c}}\n", "datasets:\n  a: 1\n"]
)
def test_what_is_no_lock_is_refused(text: str) -> None:
    with pytest.raises(InputError) as caught:
        with_entry(text, "a", {"sha256": "x"})
    assert caught.value.code == "SB-LOCK-EDIT"


@given(
    name=st.text(string.ascii_letters + string.digits + "-._", min_size=1, max_size=8),
    values=st.dictionaries(
        st.sampled_from(["sha256", "bytes", "file", "revision"]),
        st.integers(0, 10**9) | st.text(st.characters(codec="ascii", categories=("L", "N", "P", "Zs")), max_size=12),
        min_size=1,
    ),
)
def test_all_else_stays(name: str, values: dict[str, str | int]) -> None:
    try:
        changed = with_entry(LOCK, name, values)
    except InputError as error:  # a name such as 1 or null is no string for YAML
        assert error.code == "SB-LOCK-EDIT"  # noqa: PT017
        return
    before, after = yaml.safe_load(LOCK)["datasets"], yaml.safe_load(changed)["datasets"]
    assert after[name] == before.get(name, {}) | values
    assert [key for key in after if key in before] == list(before)
    assert changed.count("#") >= LOCK.count("#")

from __future__ import annotations

import re

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from serving_bench.config import strictyaml


def found(data: str | bytes) -> list[tuple[int, int, str]]:
    raw = data if isinstance(data, bytes) else data.encode()
    return [(p.line, p.column, p.code) for p in strictyaml.parse("x.yaml", raw).problems]


def test_scalars_follow_the_core_schema() -> None:
    text = b'a: 1\nb: -1.5e3\nc: "on"\nd: null\ne: true\nf: 0x10\ng: 010\nh: 1:30\ni: 2026-01-01\nj: |\n  yes\n'
    document = strictyaml.parse("x.yaml", text)
    assert document.problems == []
    assert document.value == {
        "a": 1,
        "b": -1500.0,
        "c": "on",
        "d": None,
        "e": True,
        "f": "0x10",
        "g": "010",
        "h": "1:30",
        "i": "2026-01-01",
        "j": "yes\n",
    }


def test_places_of_values_keys_and_entries() -> None:
    document = strictyaml.parse("x.yaml", b"conc: [1,\n  22]\nrouter:\n  env: {A: x}\n")
    assert document.place(("conc", 1)) == ("x.yaml", 2, 3)
    assert document.place(("router", "env", "A")) == ("x.yaml", 4, 12)
    assert document.key_places["router", "env"] == ("x.yaml", 4, 3)
    assert document.place(("router", "env", "B")) == ("x.yaml", 4, 8), (
        "what is not there has the place of what is around it"
    )


def test_an_alias_has_the_place_where_it_stands() -> None:
    document = strictyaml.parse("x.yaml", b"a: &e {K: 1}\nb: *e\n")
    assert document.value == {"a": {"K": 1}, "b": {"K": 1}}
    assert document.place(("b", "K")) == ("x.yaml", 2, 4)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a: 1\nb: 2\na: 3\n", (3, 1, "SB-YAML-DUPLICATE-KEY")),
        ("a: on\n", (1, 4, "SB-YAML-BOOL")),
        ("a: [x, No]\n", (1, 8, "SB-YAML-BOOL")),
        ("off: 1\n", (1, 1, "SB-YAML-BOOL")),
        ("a: TRUE\n", (1, 4, "SB-YAML-BOOL")),
        ("a: .inf\n", (1, 4, "SB-YAML-NUMBER")),
        ("a: -.NaN\n", (1, 4, "SB-YAML-NUMBER")),
        ("a: 1e999\n", (1, 4, "SB-YAML-NUMBER")),
        (f"a: 1{'0' * 5000}\n", (1, 4, "SB-YAML-NUMBER")),
        ("a: !!python/object:os.system {}\n", (1, 4, "SB-YAML-TAG")),
        ("a: !x z\n", (1, 4, "SB-YAML-TAG")),
        ("<<: {a: 1}\n", (1, 1, "SB-YAML-MERGE")),
        ("? [a]\n: 1\n", (1, 3, "SB-YAML-KEY")),
        ("1: a\n", (1, 1, "SB-YAML-KEY")),
        ("a: 1\n---\nb: 2\n", (2, 1, "SB-YAML-DOCUMENTS")),
        ("a:\n\t- b\n", (2, 1, "SB-YAML-TAB")),
        ("a: [1\n", (2, 1, "SB-YAML-SYNTAX")),
        ("a: *b\n", (1, 4, "SB-YAML-ALIAS")),
        ("&a [*a]\n", (1, 5, "SB-YAML-ALIAS")),
        ("", (1, 1, "SB-YAML-EMPTY")),
        ("# only a comment\n", (1, 1, "SB-YAML-EMPTY")),
        (b"a: 1\nb: \xff\n", (2, 4, "SB-YAML-ENCODING")),
        (b"\x00\x01\x02", (1, 1, "SB-YAML-SYNTAX")),
        ("a: " + "[" * 40 + "]" * 40, (1, 35, "SB-YAML-DEPTH")),
        (b"a: " + b"x" * 2_000_000, (1, 1, "SB-YAML-SIZE")),
    ],
)
def test_what_is_ambiguous_or_hostile_is_one_problem_with_a_place(
    text: str | bytes, expected: tuple[int, int, str]
) -> None:
    assert found(text) == [expected]


def test_aliases_cannot_expand_without_bound() -> None:
    levels = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    levels += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)]
    assert [code for _, _, code in found("\n".join(levels))] == ["SB-YAML-SIZE"]


def test_deep_nesting_of_every_kind_ends_in_a_problem() -> None:
    for text in ("[" * 100_000, "{a: " * 100_000, "- " * 100_000, "? " * 100_000):
        assert found(text), text[:8]


def test_many_anchors_take_linear_time() -> None:
    text = "\n".join(f"k{n}: &a{n} {{x: {n}}}" for n in range(12_000))
    assert found(text) == []


def test_odd_names_are_shown_in_printable_ascii() -> None:
    document = strictyaml.parse("x.yaml", b'a: 1\n"b\\n::error::\\u202e": 2\n"b\\n::error::\\u202e": 3\n')
    (problem,) = document.problems
    assert problem.text().isascii()
    assert problem.text().isprintable()


YAML_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**15), 10**15) | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)  # fmt: skip


@settings(max_examples=300, deadline=None)
@given(YAML_VALUES)
def test_quoted_documents_mean_what_pyyaml_says(value: object) -> None:
    """Where every string is quoted, YAML 1.1 and the core schema agree, so PyYAML is the oracle."""
    text = yaml.safe_dump({"v": value}, default_style='"', allow_unicode=True)
    if "\\0" in text or re.search("[\x85\u2028\u2029]", text):
        return  # what a config may not hold has tests of its own
    document = strictyaml.parse("x.yaml", text.encode())
    if not any(tag in text for tag in ("!!", "\t")):
        assert document.problems == []
        assert document.value == yaml.safe_load(text)


@settings(max_examples=500, deadline=2000)
@given(st.binary(max_size=400))
def test_any_bytes_give_a_value_or_problems(data: bytes) -> None:
    document = strictyaml.parse("x.yaml", data)
    assert document.problems or document.value is not None
    for problem in document.problems:
        assert problem.code.startswith("SB-YAML-")
        assert problem.line >= 1
        assert problem.column >= 1


@settings(max_examples=500, deadline=2000)
@given(st.text(alphabet="ab:-?&*!|>'\"%@`{}[],#\n \t~<01.e\\", max_size=200))
def test_any_yaml_like_text_gives_a_value_or_problems(text: str) -> None:
    document = strictyaml.parse("x.yaml", text.encode())
    assert document.problems or document.value is not None


@pytest.mark.parametrize("separator", ["\r", "\x85", "\u2028", "\u2029"])
def test_what_ends_a_line_to_yaml_only_is_refused(separator: str) -> None:
    """In an editor and in a review the second key stands in the middle of a line."""
    assert found(f"a: 1\nb: x{separator}c: 2\n") == [(2, 5, "SB-YAML-LINE-BREAK")]
    assert found(f"# remark{separator}c: 2\n") == [(1, 9, "SB-YAML-LINE-BREAK")]


def test_carriage_returns_before_new_lines_and_escaped_separators_are_fine() -> None:
    assert found('a: 1\r\nb: "x\\u2028\\N\\ry"\r\n') == []


@pytest.mark.parametrize(("text", "column"), [('a: "x\\0y"\n', 4), ('"a\\0": 1\n', 1), ('a: [1, "\\x00"]\n', 8)])
def test_an_escaped_nul_is_refused(text: str, column: int) -> None:
    assert found(text) == [(1, column, "SB-YAML-NUL")]


@pytest.mark.parametrize("text", ["a: 1\n" * 20_000, "a: [" + "on, " * 40_000 + "]", "a: [" + "!x y, " * 40_000 + "]"])
def test_so_many_problems_end_the_reading(text: str) -> None:
    problems = found(text)
    assert len(problems) == strictyaml.MAX_PROBLEMS + 1
    assert problems[-1][2] == "SB-PROBLEMS"


def test_an_alias_is_no_key() -> None:
    assert found("a: &x b\n*x : 1\n") == [(2, 1, "SB-YAML-KEY")]

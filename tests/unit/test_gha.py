from __future__ import annotations

import io
from pathlib import Path

from serving_bench import gha
from serving_bench.errors import Problem


def test_annotations_escape_what_would_end_or_split_them() -> None:
    line = gha.annotation("error", "50% off\r\n::warning::x", file="a:b,c%.yaml", line=3, title=None)
    assert line == "::error file=a%3Ab%2Cc%25.yaml,line=3::50%25 off%0D%0A::warning::x"


def test_a_problem_at_its_line() -> None:
    problem = Problem("x.yaml", 3, 7, "conc[0]", "expected a number", "SB-TYPE")
    expected = "::error file=x.yaml,line=3,col=7,title=SB-TYPE::conc[0]: expected a number"
    assert gha.problem_annotation(problem) == expected


def test_outputs_survive_hostile_values(tmp_path: Path) -> None:
    target = tmp_path / "out"
    gha.set_output({"GITHUB_OUTPUT": str(target)}, "matrix", "a\nEOF\nmatrix<<x\n")
    first, *body, last = target.read_text().splitlines()
    assert first == f"matrix<<{last}"
    assert body == ["a", "EOF", "matrix<<x", ""]


def test_nothing_happens_outside_a_runner(tmp_path: Path) -> None:
    gha.set_output({}, "a", "b")
    assert gha.append_summary({}, "x") is False


def test_a_summary_over_the_limit_is_refused(tmp_path: Path) -> None:
    env = {"GITHUB_STEP_SUMMARY": str(tmp_path / "summary")}
    assert gha.append_summary(env, "x" * (900 * 1024 + 1)) is False
    assert not (tmp_path / "summary").exists()
    assert gha.append_summary(env, "x") is True
    assert (tmp_path / "summary").read_text() == "x\n"


def test_groups_fold_on_a_runner_only() -> None:
    for env, expected in (({"GITHUB_ACTIONS": "true"}, "::group::a%0Ab\n::endgroup::\n"), ({}, "== a\nb\n")):
        out = io.StringIO()
        groups = gha.Groups(env, out)
        groups.start("a\nb")
        groups.end()
        assert out.getvalue() == expected

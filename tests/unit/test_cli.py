"""The command as people call it: a process, its streams, its exit status."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from serving_bench import cli
from serving_bench.errors import Exit
from serving_bench.render import step

ROOT = Path(__file__).resolve().parents[2]


def serving_bench(*args: str, cwd: Path = ROOT, **env: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "serving_bench", *args]
    clean = {key: value for key, value in os.environ.items() if not key.startswith("GITHUB_")}
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, env=clean | env, check=False, timeout=60)


@pytest.mark.parametrize("step", ["render", "launch", "analyze"])
def test_help_has_examples(step: str) -> None:
    done = serving_bench(step, "--help")
    assert done.returncode == 0
    assert "examples:\n  serving-bench " + step in done.stdout


def test_the_help_names_the_exit_statuses() -> None:
    done = serving_bench("--help")
    assert "4 a gate said no" in done.stdout


def test_check_prints_a_line_per_plan() -> None:
    done = serving_bench("render", "--check", "demo-2rep-dyn-mocker-kv")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "demo-2rep-dyn-mocker-kv voice-agent-demo (54 conversations) c4,8 cluster:hosted-mocker\n"


@pytest.mark.parametrize(
    "args",
    [
        [],
        ["render"],
        ["render", "--check", "--out", "x"],
        ["render", "--check", "--explain", "x"],
        ["render", "--explain", "x", "y"],
        ["render", "--explain", "x", "--changed-from", "main"],
        ["render", "--check", "--split", "0"],
        ["render", "--check", "--repeats", "a"],
        ["render", "--check", "--actor-permission", "owner"],
        ["render", "--check", "--labels-from-event", "--event", "x"],
        ["render", "--check", "--labels-from-event"],
        ["launch"],
        ["launch", "--plan", "x"],
        ["analyze", "x"],
        ["analyze", "x", "--out", "y", "--fail-on", "nothing"],
        ["dance"],
    ],
)
def test_wrong_usage_is_2(args: list[str]) -> None:
    done = serving_bench(*args)
    assert done.returncode == Exit.USAGE
    assert "usage: serving-bench" in done.stderr
    assert "Traceback" not in done.stderr


def test_check_prints_rows_on_stdout_and_nothing_else_there() -> None:
    done = serving_bench("render", "--check", "--image", "registry.example/engine:1.0", "demo-2rep-dyn-mocker-kv")
    assert done.stdout == "demo-2rep-dyn-mocker-kv voice-agent-demo (54 conversations) c4,8 cluster:hosted-mocker\n"
    assert done.stderr.startswith("warning: --image: ")


@pytest.mark.parametrize(("conc", "code"), [("4,4", "SB-CONC-REPEATED"), ("0", "SB-RANGE"), ("a", "SB-TYPE")])
def test_what_the_command_line_sets_is_checked_like_the_file(conc: str, code: str) -> None:
    done = serving_bench("render", "--check", "--conc", conc)
    assert done.returncode == Exit.FAILED
    assert done.stderr.startswith("--conc: conc")
    assert f"[{code}]" in done.stderr


def test_explain_says_where_each_value_comes_from() -> None:
    done = serving_bench("render", "--explain", "demo-2rep-dyn-mocker-kv", "--conc", "2")
    lines = done.stdout.splitlines()
    assert done.returncode == 0
    assert "conc: [2]  # --conc" in lines
    assert "replicas: 2  # configs/serving/demo-2rep-dyn-mocker-kv.yaml:5" in lines
    assert "repeats: 1  # default" in lines


@pytest.mark.parametrize(
    ("name", "content", "line", "code"),
    [
        ("unknown-key", b"foo: 1\n", 1, "SB-KEY-UNKNOWN"),
        ("duplicate", b"conc: [1]\nconc: [2]\n", 2, "SB-YAML-DUPLICATE-KEY"),
        ("type", b"conc: four\n", 1, "SB-TYPE"),
        ("not-yaml", b"a: [1\n", 2, "SB-YAML-SYNTAX"),
        ("empty", b"", 1, "SB-YAML-EMPTY"),
        ("binary", bytes(range(256)), 2, "SB-YAML-ENCODING"),
        ("missing", None, 1, "SB-FILE-MISSING"),
    ],
)
def test_bad_input_is_named_with_file_line_and_code(
    tmp_path: Path, name: str, content: bytes | None, line: int, code: str
) -> None:
    path = tmp_path / f"{name}.yaml"
    if content is not None:
        path.write_bytes(content)
    done = serving_bench("render", "--check", str(path))
    assert done.returncode == Exit.FAILED
    assert done.stdout == ""
    lines = done.stderr.splitlines()
    assert any(text.startswith(f"{path}:{line}:") and text.endswith(f"[{code}]") for text in lines), done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("args", "code"),
    [
        (["render", "--check", "no-such-config"], "SB-CONFIG-UNKNOWN"),
        (["render", "--check", "--config-dir", "no-such-folder"], "SB-CONFIG-NONE"),
        (["render", "--out", "/proc/nowhere", "demo-2rep-dyn-mocker-kv"], "SB-FILE-WRITE"),
        (["launch", "--plan", "/nowhere/plan.json", "--out", "/tmp/never-made"], "SB-FILE-MISSING"),
        (["analyze", "/nowhere/run", "--out", "/tmp/never-made"], "SB-ANALYZE-INPUT"),
    ],
)
def test_known_errors_are_one_or_two_lines(args: list[str], code: str) -> None:
    done = serving_bench(*args)
    assert done.returncode == Exit.FAILED
    lines = done.stderr.splitlines()
    assert 1 <= len(lines) <= 2
    assert lines[0].endswith(f"[{code}]")


def test_json_problems_go_to_stdout(tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_text("foo: 1\n")
    done = serving_bench("render", "--check", "--format", "json", str(path))
    assert done.returncode == Exit.FAILED
    codes = {problem["code"] for problem in json.loads(done.stdout)["problems"]}
    assert codes == {"SB-KEY-UNKNOWN", "SB-KEY-MISSING"}


def test_a_bug_is_3_with_a_file_to_paste(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("broken on purpose")

    monkeypatch.setattr(step, "run", broken)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    assert cli.run(["render", "--check"], {}) == Exit.BUG
    error = capsys.readouterr().err
    assert "RuntimeError: broken on purpose [SB-BUG]" in error
    assert "Traceback" not in error
    (report,) = tmp_path.glob("serving-bench-bug-*.txt")
    assert "broken on purpose" in report.read_text()
    assert str(report) in error


def test_debug_shows_the_traceback() -> None:
    done = serving_bench("render", "--check", "--debug", "no-such-config")
    assert "Traceback" in done.stderr


def test_a_closed_pipe_is_no_bug() -> None:
    done = subprocess.run(
        f"{sys.executable} -m serving_bench --help | true",
        shell=True,
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
    )
    assert "SB-BUG" not in done.stderr

"""The command line when the world around it is odd: readers that went, full disks, names of many lines."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from serving_bench.cli import build_parser, run

COMMAND = (sys.executable, "-m", "serving_bench")


def _missing(tmp_path: Path) -> list[str]:
    return ["launch", "--plan", str(tmp_path / "no\n::error::plan"), "--out", str(tmp_path / "out")]


def test_an_error_is_one_line_and_no_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(_missing(tmp_path), {}) == 1
    assert [line.partition(" ")[0] for line in capsys.readouterr().err.splitlines()][1:] == ["hint:"]


@pytest.mark.parametrize("text", ["nan", "inf", "0", "-1", "soon"])
def test_a_heartbeat_is_a_time(text: str) -> None:
    with pytest.raises(SystemExit) as raised:
        build_parser().parse_args(["launch", "--plan", "p", "--out", "o", "--heartbeat", text])
    assert raised.value.code == 2


def test_what_the_system_refuses_is_no_bug(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied", str(tmp_path))

    monkeypatch.setattr("serving_bench.launch.step.run", refuse)
    assert run(_missing(tmp_path), {}) == 1
    assert f"{tmp_path}: Permission denied [SB-OS]" in capsys.readouterr().err


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_full_disk_behind_stdout_is_an_error(sample: Path, tmp_path: Path, unbuffered: str) -> None:
    with Path("/dev/full").open("w") as full:
        done = _analyze(sample, tmp_path / "out", full.fileno(), PYTHONUNBUFFERED=unbuffered)
    assert done.returncode == 1
    assert "No space left on device [SB-OS]" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_reader_that_has_gone_costs_neither_files_nor_status(sample: Path, tmp_path: Path, unbuffered: str) -> None:
    read, write = os.pipe()
    os.close(read)
    done = _analyze(sample, tmp_path / "out", write, PYTHONUNBUFFERED=unbuffered)
    os.close(write)
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "out" / "report.html").is_file()


def test_names_that_the_terminal_cannot_show_are_escaped(sample: Path, tmp_path: Path) -> None:
    done = _analyze(sample, tmp_path / "é", subprocess.PIPE, PYTHONIOENCODING="ascii")
    assert done.returncode == 0
    assert "\\xe9/report.html" in done.stdout


def _analyze(sample: Path, out: Path, sink: int, **env: str) -> subprocess.CompletedProcess[str]:
    argv = [*COMMAND, "analyze", str(sample), "--out", str(out)]
    return subprocess.run(argv, stdout=sink, stderr=subprocess.PIPE, text=True, env={**os.environ, **env}, check=False)


@pytest.fixture
def sample(tmp_path: Path) -> Path:
    """The smallest artifact directory: its report is INVALID, which is no error."""
    folder = tmp_path / "artifacts"
    folder.mkdir()
    (folder / "profile_export.jsonl").write_text("")
    return folder

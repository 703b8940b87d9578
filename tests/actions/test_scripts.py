"""The set-up scripts: idempotent, repaired after an interruption, safe to run twice at once."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def env(tmp_path: Path, uv_cache: str) -> dict[str, str]:
    """What a fresh machine has, with uv on the PATH and its cache, so that the registry is asked once."""
    bin_folder = Path(sys.executable).parent
    home = tmp_path / "user"
    home.mkdir()
    kept = {name: value for name, value in os.environ.items() if name.startswith(("PIP_", "SSL_", "UV_"))}
    system = "/usr/local/bin:/usr/bin:/bin"
    places = {"HOME": str(home), "UV_CACHE_DIR": uv_cache, "SERVING_BENCH_HOME": str(tmp_path / "envs")}
    return {**kept, **places, "PATH": f"{bin_folder}:{system}"}


def script(root: Path, name: str, *arguments: str) -> list[str]:
    return [str(root / "scripts" / name), *arguments]


def run(command: list[str], env: dict[str, str], **options: object) -> subprocess.CompletedProcess[str]:
    cwd = options.get("cwd", "/")
    return subprocess.run(command, env=env, capture_output=True, text=True, check=False, cwd=str(cwd), timeout=240)


@pytest.fixture
def toolkit(sources: Path, env: dict[str, str]) -> Path:
    done = run(script(sources, "install-toolkit"), env)
    assert done.returncode == 0, done.stderr
    return Path(done.stdout.strip())


@pytest.mark.e2e
def test_set_up_gives_the_command_with_the_locked_versions(toolkit: Path, sources: Path, env: dict[str, str]) -> None:
    assert toolkit == Path(env["SERVING_BENCH_HOME"]) / "toolkit"
    shown = run([str(toolkit / "bin/serving-bench"), "--help"], env)
    assert shown.returncode == 0
    assert "render" in shown.stdout
    lock = (sources / "requirements/toolkit.txt").read_text(encoding="utf-8")
    code = "import pydantic, msgspec; print(f'pydantic=={pydantic.VERSION} msgspec=={msgspec.__version__}')"
    pins = run([str(toolkit / "bin/python"), "-c", code], env).stdout.split()
    assert len(pins) == 2
    assert all(f"{pin} \\" in lock for pin in pins)
    assert subprocess.check_output(["git", "-C", str(sources), "status", "--porcelain"]) == b""


@pytest.mark.e2e
def test_a_second_call_is_quick_silent_and_changes_nothing(toolkit: Path, sources: Path, env: dict[str, str]) -> None:
    stamp = (toolkit / ".stamp").stat()
    started = time.monotonic()
    done = run(script(sources, "install-toolkit"), env)
    assert time.monotonic() - started < 2
    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, str(toolkit), "")
    assert (toolkit / ".stamp").stat() == stamp


@pytest.mark.e2e
@pytest.mark.parametrize("damage", ["stamp", "python", "lock"])
def test_a_damaged_or_outdated_environment_is_built_again(
    toolkit: Path, sources: Path, env: dict[str, str], damage: str
) -> None:
    lock = sources / "requirements/toolkit.txt"
    before = lock.read_bytes()
    if damage == "stamp":  # what an interrupted set-up looks like
        (toolkit / ".stamp").unlink()
        shutil.rmtree(next(toolkit.glob("lib/python*/site-packages/pydantic")))
    elif damage == "python":
        (toolkit / "bin/python").unlink()
    else:
        lock.write_bytes(before + b"# another\n")
    try:
        done = run(script(sources, "install-toolkit"), env)
    finally:
        lock.write_bytes(before)
    assert done.returncode == 0, done.stderr
    assert "setting up" in done.stderr
    assert run([str(toolkit / "bin/serving-bench"), "--help"], env).returncode == 0


@pytest.fixture
def started() -> Iterator[list[subprocess.Popen[str]]]:
    processes: list[subprocess.Popen[str]] = []
    yield processes
    for process in processes:
        process.kill()
        process.communicate()


def start(command: list[str], env: dict[str, str], started: list[subprocess.Popen[str]]) -> subprocess.Popen[str]:
    pipe = subprocess.PIPE
    started.append(subprocess.Popen(command, env=env, stdout=pipe, stderr=pipe, text=True, start_new_session=True))
    return started[-1]


@pytest.mark.e2e
def test_two_set_ups_at_once_build_one_environment(
    sources: Path, env: dict[str, str], started: list[subprocess.Popen[str]]
) -> None:
    pair = [start(script(sources, "install-toolkit"), env, started) for _ in range(2)]
    output = [process.communicate(timeout=240) for process in pair]
    assert [process.returncode for process in pair] == [0, 0]
    assert sum("setting up" in errors for _, errors in output) == 1
    assert run([f"{env['SERVING_BENCH_HOME']}/toolkit/bin/serving-bench", "--help"], env).returncode == 0


def in_session(leader: int) -> list[int]:
    """Live processes of a session (zombies left out)."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue  # ended in between
        if int(fields[3]) == leader and fields[0] != "Z":
            found.append(int(stat.parent.name))
    return found


@pytest.mark.e2e
@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_the_set_up_and_the_next_call_repairs_it(
    sources: Path, env: dict[str, str], started: list[subprocess.Popen[str]], number: signal.Signals, status: int
) -> None:
    env["UV_CACHE_DIR"] = str(Path(env["HOME"]) / "cold")  # so that there is time to interrupt it
    process = start(script(sources, "install-toolkit"), env, started)
    folder = Path(env["SERVING_BENCH_HOME"]) / "toolkit"
    deadline = time.monotonic() + 60
    while not folder.exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(number)
    process.communicate(timeout=30)
    assert process.returncode == status
    assert not (folder / ".stamp").exists()
    assert in_session(process.pid) == []
    assert run(script(sources, "install-toolkit"), env).returncode == 0


@pytest.mark.e2e
def test_without_uv_pip_does_it(sources: Path, env: dict[str, str], tmp_path: Path) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "uv").write_text("#!/bin/sh\nexit 1\n")  # a uv that cannot install anything here
    (tools / "uv").chmod(0o755)
    done = run(script(sources, "install-toolkit"), {**env, "PATH": f"{tools}:{env['PATH']}"})
    assert done.returncode == 0, done.stderr
    assert "installing with pip" in done.stderr
    assert run([f"{done.stdout.strip()}/bin/serving-bench", "--help"], env).returncode == 0


def test_no_fitting_python_is_one_clear_error(sources: Path, env: dict[str, str]) -> None:
    done = run(script(sources, "install-toolkit"), {**env, "SERVING_BENCH_PYTHON": "python9"})
    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        "serving-bench: error: no Python 3.11, 3.12 or 3.13 found (looked for python9)",
        "serving-bench: hint: install one, or name one: SERVING_BENCH_PYTHON=/path/to/python3.12",
    ]


def test_a_folder_that_cannot_be_written_is_one_clear_error(sources: Path, env: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    done = run(script(sources, "install-toolkit"), {**env, "SERVING_BENCH_HOME": str(tmp_path / "file/envs")})
    assert done.returncode == 1
    first, hint = done.stderr.splitlines()
    assert first == f"serving-bench: error: {tmp_path}/file/envs: cannot be written"
    assert "SERVING_BENCH_HOME" in hint


@pytest.mark.parametrize("name", ["demo", "test"])
def test_help_needs_no_set_up(sources: Path, env: dict[str, str], name: str) -> None:
    done = run(script(sources, name, "--help"), env)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"usage: scripts/{name}")
    assert not Path(env["SERVING_BENCH_HOME"]).exists()


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("test", ["--with", "nosuch"], "unknown suite: nosuch; the suites are: browser (see --help)"),
        ("test", ["tests/unit"], "unknown argument: tests/unit; arguments for pytest come after -- (see --help)"),
        ("demo", ["--fast"], "unknown argument: --fast (see --help)"),
    ],
)
def test_wrong_usage_is_status_2(
    sources: Path, env: dict[str, str], name: str, arguments: list[str], message: str
) -> None:
    done = run(script(sources, name, *arguments), env)
    assert (done.returncode, done.stderr) == (2, f"serving-bench: error: {message}\n")

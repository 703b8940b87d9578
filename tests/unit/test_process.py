"""Process trees are stopped as a whole, against real processes."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from serving_bench.process import Child, Family, Identity, boot_id, identify, is_running

FAKES = Path(__file__).parents[1] / "fakes"


@pytest.fixture
def family() -> Iterator[Family]:
    made = Family()
    yield made
    assert made.stop_all(grace_s=0.0) == set()


def _spawn(family: Family, folder: Path, *argv: str) -> Child:
    return family.spawn("test", (sys.executable, *argv), env=dict(os.environ), cwd=folder, log=folder / "test.log")


def _wait_for(path: Path) -> str:
    end = time.monotonic() + 10
    while not path.exists():
        assert time.monotonic() < end, f"{path.name} was not written"
        time.sleep(0.01)
    return path.read_text(encoding="ascii")


def _wait_exit(child: Child) -> int:
    return child.popen.wait(timeout=10)


def test_output_goes_to_the_log_and_appends(family: Family, tmp_path: Path) -> None:
    (tmp_path / "test.log").write_bytes(b"before\n")
    child = _spawn(
        family, tmp_path, "-c", "import sys; print('out'); sys.stdout.flush(); print('err', file=sys.stderr)"
    )
    assert _wait_exit(child) == 0
    assert (tmp_path / "test.log").read_bytes() == b"before\nout\nerr\n"
    assert child.log_offset == len(b"before\n")


def test_a_child_has_its_own_session_no_input_and_the_given_environment_only(family: Family, tmp_path: Path) -> None:
    code = "import os, sys; print(os.getsid(0) == os.getpid(), repr(sys.stdin.read()), sorted(os.environ))"
    child = family.spawn("test", (sys.executable, "-S", "-c", code), env={"A": "1"}, cwd=tmp_path, log=tmp_path / "log")
    _wait_exit(child)
    session, stdin, names = (tmp_path / "log").read_text().split(" ", 2)
    assert (session, stdin) == ("True", "''")
    assert set(eval(names)) - {"LC_CTYPE"} == {"A"}


def test_a_command_that_is_not_there_is_an_os_error(family: Family, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        family.spawn("test", ("no-such-command",), env={"PATH": "/bin"}, cwd=tmp_path, log=tmp_path / "log")


@pytest.mark.parametrize("mode", [(), ("--quit",)])
def test_a_grandchild_that_ignores_term_and_changed_its_session_is_stopped(
    family: Family, tmp_path: Path, mode: tuple[str, ...]
) -> None:
    child = _spawn(family, tmp_path, str(FAKES / "stubborn_tree.py"), str(tmp_path / "pids"), *mode)
    parent, middle, stubborn = map(int, _wait_for(tmp_path / "pids").split())
    assert child.pid == parent
    if mode:
        assert _wait_exit(child) == 0
    assert psutil.Process(stubborn) in family.members(), "the orphan became a member of the family"
    assert os.getsid(stubborn) == stubborn != os.getsid(parent) if not mode else os.getsid(stubborn) == stubborn
    left = family.stop_all(grace_s=0.3)
    assert left == set()
    assert [pid for pid in (parent, middle, stubborn) if psutil.pid_exists(pid)] == [], "no process and no zombie"


def test_stopping_one_tree_leaves_the_others_alone(family: Family, tmp_path: Path) -> None:
    kept = _spawn(family, tmp_path, "-c", "import time; time.sleep(600)")
    stopped = _spawn(family, tmp_path, "-c", "import subprocess; subprocess.run(['sleep', '600'])")
    end = time.monotonic() + 10
    while not (children := stopped.process.children()):
        assert time.monotonic() < end
        time.sleep(0.01)
    assert family.stop([stopped], grace_s=5.0) == set()
    assert not any(process.is_running() for process in children)
    assert stopped.exit_status() == -signal.SIGTERM
    assert kept.exit_status() is None


def test_a_process_gets_its_time_to_end_by_itself(family: Family, tmp_path: Path) -> None:
    code = (
        "import pathlib, signal, sys, time\n"
        "signal.signal(signal.SIGTERM, lambda *_: (time.sleep(0.5), sys.exit(7)))\n"
        "pathlib.Path('up').touch()\ntime.sleep(600)"
    )
    child = _spawn(family, tmp_path, "-c", code)
    _wait_for(tmp_path / "up")
    family.stop([child], grace_s=10.0)
    assert child.exit_status() == 7


def test_a_process_that_ignores_term_is_killed_after_the_grace(family: Family, tmp_path: Path) -> None:
    code = (
        "import pathlib, signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "pathlib.Path('up').touch()\ntime.sleep(600)"
    )
    child = _spawn(family, tmp_path, "-c", code)
    _wait_for(tmp_path / "up")
    begun = time.monotonic()
    family.stop([child], grace_s=0.4)
    assert 0.4 <= time.monotonic() - begun < 2.0
    assert child.exit_status() == -signal.SIGKILL


def test_a_stopped_process_is_killed_too(family: Family, tmp_path: Path) -> None:
    child = _spawn(family, tmp_path, "-c", "import time; time.sleep(600)")
    os.kill(child.pid, signal.SIGSTOP)
    family.stop([child], grace_s=0.2)
    assert child.exit_status() == -signal.SIGKILL


def test_orphans_that_were_there_before_are_kept(family: Family, tmp_path: Path) -> None:
    fake = str(FAKES / "stubborn_tree.py")
    first = _spawn(family, tmp_path, fake, str(tmp_path / "first"), "--quit")
    old = int(_wait_for(tmp_path / "first").split()[2])
    _wait_exit(first)
    kept = family.orphans()
    second = _spawn(family, tmp_path, fake, str(tmp_path / "second"), "--quit")
    new = int(_wait_for(tmp_path / "second").split()[2])
    _wait_exit(second)
    family.stop_orphans(kept, grace_s=0.0)
    assert psutil.pid_exists(old)
    assert not psutil.pid_exists(new)


def test_children_from_before_are_no_members(tmp_path: Path) -> None:
    first = Family()
    child = _spawn(first, tmp_path, "-c", "import time; time.sleep(600)")
    second = Family()
    assert second.members() == set()
    assert second.stop_all(grace_s=0.0) == set()
    assert child.exit_status() is None
    first.stop_all(grace_s=1.0)
    assert child.exit_status() is not None


def test_a_child_ends_when_the_launcher_is_killed(family: Family, tmp_path: Path) -> None:
    code = (
        "import os, pathlib, sys, time\nfrom serving_bench.process import Family\n"
        "here = pathlib.Path('.').resolve()\n"
        "child = Family().spawn('x', ('sleep', '600'), env=dict(os.environ), cwd=here, log=here / 'inner.log')\n"
        "pathlib.Path('p').write_text(str(child.pid)); pathlib.Path('p').rename('pid'); time.sleep(600)"
    )
    launcher = _spawn(family, tmp_path, "-c", code)
    inner = identify(int(_wait_for(tmp_path / "pid")))
    assert inner is not None
    assert is_running(inner)
    os.kill(launcher.pid, signal.SIGKILL)
    end = time.monotonic() + 5
    while is_running(inner):
        assert time.monotonic() < end, "the child outlived its launcher"
        time.sleep(0.01)


def test_identity_tells_a_reused_pid_another_boot_and_a_zombie_apart(family: Family, tmp_path: Path) -> None:
    child = _spawn(family, tmp_path, "-c", "import time; time.sleep(600)")
    own = child.identity
    assert own.boot_id == boot_id()
    assert is_running(own)
    assert not is_running(Identity(own.pid, own.start_ticks - 1, own.boot_id))
    assert not is_running(Identity(own.pid, own.start_ticks, "00000000-0000-0000-0000-000000000000"))
    os.kill(child.pid, signal.SIGKILL)
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert psutil.Process(own.pid).status() == psutil.STATUS_ZOMBIE
    assert not is_running(own)
    _wait_exit(child)
    assert identify(own.pid) is None
    assert not is_running(own)


def test_identity_survives_a_name_with_parentheses_and_spaces(family: Family, tmp_path: Path) -> None:
    code = (
        "import pathlib, time\npathlib.Path('/proc/self/comm').write_text('a) S 1 (b')\n"
        "pathlib.Path('up').touch()\ntime.sleep(600)"
    )
    child = _spawn(family, tmp_path, "-c", code)
    _wait_for(tmp_path / "up")
    assert identify(child.pid) == child.identity

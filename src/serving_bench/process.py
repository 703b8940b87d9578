"""Starting and stopping process trees, so that nothing of them survives.

Linux only. The calling process becomes the *subreaper* of everything it starts:
a grandchild whose parent has died becomes its child, whatever session or group
it moved to, and can therefore always be found. Processes are told apart by pid
and start time, so a pid that the kernel gave to somebody else is never
signalled.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

import psutil

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_LIBC = ctypes.CDLL(None, use_errno=True)
_POLL_S = 0.05
_LEFTOVER_TERM_S = 2.0


@dataclass(frozen=True)
class Identity:
    """A process beyond doubt: pids are reused, pid + start time + boot id are not.

    ``start_ticks`` is field 22 of ``/proc/<pid>/stat``: clock ticks since boot.
    """

    pid: int
    start_ticks: int
    boot_id: str

    def as_dict(self) -> dict[str, int | str]:
        return asdict(self)


@cache
def boot_id() -> str:
    """The kernel's id of this boot."""
    return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()


def _stat_fields(pid: int) -> list[str] | None:
    """Fields of ``/proc/<pid>/stat`` from the third (state) on; None if there is no such process."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The second field is the name in parentheses, and a name may hold both spaces and parentheses.
    return text.rpartition(")")[2].split()


def identify(pid: int) -> Identity | None:
    """Who has this pid now; None if nobody has."""
    fields = _stat_fields(pid)
    return None if fields is None else Identity(pid, int(fields[19]), boot_id())


def is_running(identity: Identity) -> bool:
    """Whether that very process still runs; a zombie does not."""
    fields = _stat_fields(identity.pid)
    if fields is None or fields[0] in "ZX":
        return False
    return int(fields[19]) == identity.start_ticks and boot_id() == identity.boot_id


@dataclass(frozen=True)
class Child:
    """A process that was started here, with the root of its tree and its log."""

    name: str
    argv: tuple[str, ...]
    popen: subprocess.Popen[bytes]
    process: psutil.Process
    identity: Identity
    log: Path
    log_offset: int
    """Size of the log when the process was started: what is before is an earlier start's."""

    @property
    def pid(self) -> int:
        return self.popen.pid

    def exit_status(self) -> int | None:
        """Exit status, negative for a signal; None while it runs."""
        return self.popen.poll()


class Family:
    """Everything that this process starts through it, and all descendants of that.

    Children that the calling process had before are left alone.
    """

    def __init__(self) -> None:
        if _LIBC.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
            raise OSError(ctypes.get_errno(), "prctl(PR_SET_CHILD_SUBREAPER) failed")
        self._self = psutil.Process()
        self._before = frozenset(self._self.children())
        self._children: list[Child] = []

    def spawn(self, name: str, argv: Sequence[str], *, env: Mapping[str, str], cwd: Path, log: Path) -> Child:
        """Start argv in a session of its own, output appended to log from the first byte.

        Raises ``OSError`` or ``ValueError`` (a word that no command can hold) where it cannot be started.
        """
        log.parent.mkdir(parents=True, exist_ok=True)
        parent = os.getpid()
        with log.open("ab") as sink:
            offset = sink.tell()
            popen = subprocess.Popen(
                list(argv),
                env=dict(env),
                cwd=cwd,
                stdin=subprocess.DEVNULL,
                stdout=sink,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=lambda: _before_exec(parent),  # noqa: PLW1509  one system call, no lock
            )
        process = psutil.Process(popen.pid)
        identity = identify(popen.pid)
        if identity is None:  # cannot be: a child that was not waited for keeps its pid
            raise OSError(f"{name}: no process {popen.pid} right after its start")
        child = Child(name, tuple(argv), popen, process, identity, log, offset)
        self._children.append(child)
        return child

    def members(self) -> set[psutil.Process]:
        """All living descendants, orphans included."""
        found: set[psutil.Process] = set()
        for top in set(self._self.children()) - self._before:
            found |= _tree(top)
        return {process for process in found if _lives(process)}

    def orphans(self) -> set[psutil.Process]:
        """Living direct children that were not started here: what lost its parent."""
        own = {child.process for child in self._children}
        return {process for process in set(self._self.children()) - self._before - own if _lives(process)}

    def reap(self) -> None:
        """Collect the exit status of everything that has ended."""
        own = {child.pid for child in self._children}
        for child in self._children:
            child.popen.poll()
        for process in set(self._self.children()) - self._before:
            if process.pid not in own and not _lives(process):
                _collect(process.pid)

    def stop(self, roots: Iterable[Child], *, grace_s: float, kill_s: float = 5.0) -> set[psutil.Process]:
        """Stop the trees of these children; returns what is still alive (nothing, short of a stuck kernel)."""
        tops = [child.process for child in roots]
        return self._ladder(tops, lambda: set().union(*map(_tree, tops)), grace_s, kill_s)

    def stop_orphans(self, keep: Iterable[psutil.Process], *, grace_s: float, kill_s: float = 5.0) -> None:
        """Stop the orphans that came after ``keep`` was recorded, with their trees."""
        kept = set(keep)
        tops = list(self.orphans() - kept)
        self._ladder(tops, lambda: set().union(*map(_tree, self.orphans() - kept)), grace_s, kill_s)

    def stop_all(self, *, grace_s: float, kill_s: float = 5.0) -> set[psutil.Process]:
        """Stop every member; returns what is still alive."""
        return self._ladder(list(self._self.children()), self.members, grace_s, kill_s)

    def _ladder(
        self, tops: Sequence[psutil.Process], look: Callable[[], set[psutil.Process]], grace_s: float, kill_s: float
    ) -> set[psutil.Process]:
        """TERM to the roots, which may stop their own children; TERM to what is left; KILL.

        ``look`` is called again and again, because trees grow; whatever it once
        found is followed to its end even where it left the tree.
        """
        seen: set[psutil.Process] = set()

        def left() -> set[psutil.Process]:
            self.reap()
            seen.update(look())
            return {process for process in seen if _lives(process)}

        end = time.monotonic() + grace_s
        roots = (set(tops) - self._before) & left()
        _signal(roots, signal.SIGTERM)
        _wait(lambda: not left() or not any(map(_lives, roots)), end)
        _signal(left(), signal.SIGTERM)
        _wait(lambda: not left(), min(end, time.monotonic() + _LEFTOVER_TERM_S))
        end = time.monotonic() + kill_s
        while (alive := left()) and time.monotonic() < end:
            _signal(alive, signal.SIGKILL)
            time.sleep(_POLL_S / 5)
        return left()


def _before_exec(parent: int) -> None:
    """In the child: be told to end when the launcher dies, however it dies."""
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(127)


def _tree(top: psutil.Process) -> set[psutil.Process]:
    try:
        return {top, *top.children(recursive=True)}
    except psutil.NoSuchProcess:
        return {top}


def _lives(process: psutil.Process) -> bool:
    """Whether it still runs code: neither gone nor a zombie nor a reused pid."""
    try:
        return process.is_running() and process.status() not in {psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD}
    except psutil.NoSuchProcess:
        return False


def _signal(processes: Iterable[psutil.Process], number: int) -> None:
    for process in processes:
        try:
            process.send_signal(number)
        except psutil.NoSuchProcess:  # ended in between, which is what is wanted
            continue
        except psutil.AccessDenied:
            # It has become another user's (sudo, su): the others must still be stopped, and the
            # caller is told of what is left.
            continue


def _collect(pid: int) -> None:
    try:
        os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:  # collected already
        return


def _wait(done: Callable[[], bool], end: float) -> None:
    while not done() and time.monotonic() < end:
        time.sleep(_POLL_S)

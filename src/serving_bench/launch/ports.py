"""Blocks of ports, leased host-wide, held until the moment they are used.

Three things keep a port ours: it lies outside the kernel's ephemeral range, so
no connection gets it by chance; a record under a host-wide lock keeps other
launches away; and the sockets stay bound until the process that wants them is
started. A record names its owner by pid, start time and boot id and is void
when that process is gone.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import re
import secrets
import socket
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from serving_bench.errors import SystemUnderTestError
from serving_bench.process import Identity, identify, is_running

LEASE_DIR = Path("/tmp/serving-bench-ports")  # noqa: S108  one place for all users and runners of the host
_LOCK = "lock"
LOCK_S = 30.0
_LOCK_POLL_S = 0.01
_RECORD = re.compile(r"(\d{1,5})-(\d{1,5})-(\d{1,9})-(\d{1,20})-([0-9a-f-]{36})\.json")
_RANGE_FILE = Path("/proc/sys/net/ipv4/ip_local_port_range")
_LOWEST = 10_000
"""Below live the ports that people know by heart; taken only where nothing else is left."""


@dataclass
class Lease:
    """A contiguous block of ports; the sockets are bound until released."""

    base: int
    size: int
    record: Path
    _sockets: dict[int, socket.socket] = field(default_factory=dict, repr=False)

    @property
    def ports(self) -> range:
        return range(self.base, self.base + self.size)

    def release_sockets(self, ports: Iterable[int]) -> None:
        """Let go of these ports, for the process that is started next."""
        for port in ports:
            held = self._sockets.pop(port, None)
            if held is not None:
                held.close()

    def close(self) -> None:
        """Give the block back. Doing it twice is harmless."""
        self.release_sockets(list(self._sockets))
        self.record.unlink(missing_ok=True)


def ephemeral_range(path: Path = _RANGE_FILE) -> tuple[int, int]:
    """First and last port that the kernel gives to connections by itself."""
    low, high = path.read_text(encoding="ascii").split()
    return int(low), int(high)


def candidate_ranges(floor: int, ceiling: int, size: int) -> list[range]:
    """Where blocks may start, in the order of trying: outside [floor, ceiling], unprivileged.

    ``floor`` and ``ceiling`` are the ends of the ephemeral range.
    """
    low = _LOWEST if _LOWEST + size <= floor else 1024
    ranges = [range(low, floor - size + 1), range(ceiling + 1, 65_536 - size + 1)]
    return [found for found in ranges if len(found) > 0]


def acquire(
    size: int,
    *,
    avoid: Iterable[range] = (),
    folder: Path = LEASE_DIR,
    ephemeral: tuple[int, int] | None = None,
    pick: Callable[[int], int] = secrets.randbelow,
    pause: Callable[[float], None] = time.sleep,
) -> Lease:
    """Lease ``size`` ports in a row that nobody leases or listens on.

    ``avoid`` are blocks that were tried before. The search starts at a place
    chosen by ``pick``, so that launches that start together seldom meet; ``pause``
    waits between looks at the lock, and may raise to give up.
    Raises ``SystemUnderTestError``: SB-PORTS-NONE, SB-LEASE-FOLDER, SB-LEASE-LOCKED.
    """
    floor, ceiling = ephemeral or ephemeral_range()
    _prepare(folder)
    sweep(folder)
    avoided = list(avoid)
    with _locked(folder, pause):
        leased = records(folder)
        for start in _starts(candidate_ranges(floor, ceiling, size), size, pick):
            block = range(start, start + size)
            if any(_overlap(block, other) for other in avoided):
                continue
            if any(_overlap(block, other.block) and is_running(other.owner) for other in leased):
                continue
            sockets = _bind_all(block)
            if sockets is not None:
                return Lease(start, size, _write_record(folder, block), sockets)
    raise SystemUnderTestError(
        f"no {size} free ports in a row outside the kernel's ephemeral range {floor}-{ceiling}",
        code="SB-PORTS-NONE",
        hint=f"narrow net.ipv4.ip_local_port_range, or look for leftovers in {folder}",
        retriable=True,
    )


def _starts(ranges: Sequence[range], size: int, pick: Callable[[int], int]) -> Iterator[int]:
    for where in ranges:
        slots = where[::size]
        first = pick(len(slots))
        yield from slots[first:]
        yield from slots[:first]


def _bind_all(block: range) -> dict[int, socket.socket] | None:
    """Bind every port of the block on all addresses; None if one is in use on any address.

    Without SO_REUSEADDR a bind also fails for a port that somebody else has on
    loopback only, or that still lingers in TIME_WAIT: then another block is as good.
    """
    sockets: dict[int, socket.socket] = {}
    for port in block:
        held = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        try:
            held.bind(("0.0.0.0", port))  # noqa: S104  bound to reserve, never listening
        except OSError as error:
            held.close()
            for other in sockets.values():
                other.close()
            if error.errno not in (errno.EADDRINUSE, errno.EACCES):
                raise
            return None
        sockets[port] = held
    return sockets


def _prepare(folder: Path) -> None:
    """Make the folder that all users of the host share: sticky, so that nobody removes another's records."""
    try:
        folder.mkdir()
        folder.chmod(0o1777)
    except FileExistsError:
        if folder.is_symlink() or not folder.is_dir():
            raise SystemUnderTestError(
                f"{folder} is not a folder", code="SB-LEASE-FOLDER", hint="remove it: launch makes it again"
            ) from None


@contextmanager
def _locked(folder: Path, pause: Callable[[float], None] = time.sleep) -> Iterator[None]:
    """Hold the host-wide lock; the kernel drops it when the holder dies, but a holder may also be stopped."""
    handle = _open_lock(folder / _LOCK)
    end = time.monotonic() + LOCK_S
    try:
        while not _lock(handle):
            if time.monotonic() > end:
                raise SystemUnderTestError(
                    f"{folder / _LOCK} was held by another process for {LOCK_S:g} s",
                    code="SB-LEASE-LOCKED",
                    hint="is a launch stopped? fuser names the holder",
                    retriable=True,
                )
            pause(_LOCK_POLL_S)
        yield
    finally:
        os.close(handle)


def _lock(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _open_lock(path: Path) -> int:
    # Opened for reading only: a lock needs no more, and in a sticky folder the kernel
    # (fs.protected_regular) refuses O_CREAT on a file that belongs to another user.
    while True:
        with suppress(FileNotFoundError):
            return os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        with suppress(FileExistsError):
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644))


@dataclass(frozen=True)
class Record:
    """A lease of some process: all of it is in the file's name, so it appears complete or not at all."""

    path: Path
    block: range
    owner: Identity


def records(folder: Path = LEASE_DIR) -> list[Record]:
    """All records, those of dead owners included."""
    found = (_parse(folder, name) for name in os.listdir(folder))  # noqa: PTH208  runs under the lock
    return [record for record in found if record is not None]


def _parse(folder: Path, name: str) -> Record | None:
    match = _RECORD.fullmatch(name)
    if match is None:
        return None
    base, size, pid, ticks = (int(group) for group in match.groups()[:4])
    return Record(folder / name, range(base, base + size), Identity(pid, ticks, match.group(5)))


def sweep(folder: Path = LEASE_DIR) -> None:
    """Remove the records of dead owners. Needs no lock: such a name is never used again."""
    for record in records(folder):
        if not is_running(record.owner):
            with suppress(PermissionError):  # another user's in the sticky folder: void all the same
                record.path.unlink(missing_ok=True)


def _overlap(one: range, other: range) -> bool:
    return one.start < other.stop and other.start < one.stop


def _write_record(folder: Path, block: range) -> Path:
    """Write the record of this process under the lock; its content repeats the name for people."""
    owner = identify(os.getpid())
    if owner is None:
        raise OSError("this process is not in /proc")
    path = folder / f"{block.start}-{len(block)}-{owner.pid}-{owner.start_ticks}-{owner.boot_id}.json"
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o644)
    with os.fdopen(handle, "w", encoding="ascii") as out:
        json.dump({**owner.as_dict(), "base": block.start, "size": len(block), "uid": os.getuid()}, out)
    return path

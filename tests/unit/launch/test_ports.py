"""Leases of port blocks, with real sockets and real processes."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from serving_bench.errors import SystemUnderTestError
from serving_bench.launch import ports
from serving_bench.process import identify

FAKE = Path(__file__).parents[2] / "fakes" / "lease_holder.py"
HIGH = (61_000, 65_000)
"""An ephemeral range that leaves 65,001 to 65,535 and everything below 61,000."""


def _first(_: int) -> int:
    return 0


def _acquire(folder: Path, size: int, **more: object) -> ports.Lease:
    return ports.acquire(size, folder=folder, **more)  # type: ignore[arg-type]


def test_a_block_lies_below_the_kernels_own_range(tmp_path: Path) -> None:
    floor, ceiling = ports.ephemeral_range()
    lease = ports.acquire(9, folder=tmp_path / "leases")
    assert len(lease.ports) == 9
    assert lease.ports.stop <= floor or lease.ports.start > ceiling
    lease.close()


def test_the_kernels_range_is_read_from_its_file(tmp_path: Path) -> None:
    (tmp_path / "range").write_text("9000\t60999\n")
    assert ports.ephemeral_range(tmp_path / "range") == (9000, 60999)


@pytest.mark.parametrize(
    ("floor", "ceiling", "size", "expected"),
    [
        (32_768, 60_999, 10, [range(10_000, 32_759), range(61_000, 65_527)]),
        (9_000, 65_535, 10, [range(1_024, 8_991)]),
        (1_024, 60_999, 10, [range(61_000, 65_527)]),
        (1_024, 65_535, 10, []),
        (1_030, 65_530, 5, [range(1_024, 1_026), range(65_531, 65_532)]),
    ],
)
def test_where_blocks_may_start(floor: int, ceiling: int, size: int, expected: list[range]) -> None:
    assert ports.candidate_ranges(floor, ceiling, size) == expected


def test_ports_are_bound_until_released_and_then_can_be_bound(tmp_path: Path) -> None:
    lease = _acquire(tmp_path, 3)
    first, second, _ = lease.ports
    with socket.socket() as other, pytest.raises(OSError, match="in use"):
        other.bind(("127.0.0.1", first))
    lease.release_sockets([first])
    with socket.socket() as other:
        other.bind(("127.0.0.1", first))
    with socket.socket() as other, pytest.raises(OSError, match="in use"):
        other.bind(("127.0.0.1", second))
    lease.close()
    with socket.socket() as other:
        other.bind(("127.0.0.1", second))


@pytest.mark.parametrize("address", ["127.0.0.1", "0.0.0.0"])
def test_a_block_with_a_port_that_somebody_listens_on_is_passed_over(tmp_path: Path, address: str) -> None:
    with socket.socket() as other:
        other.bind((address, 0))
        other.listen()
        taken = other.getsockname()[1]
        # the kernel gave the port, so let the range to search be the two blocks around it
        around = (taken + 8, 65_535)
        lease = ports.acquire(4, folder=tmp_path, ephemeral=around, pick=lambda slots: slots - 2)
        assert taken not in lease.ports
        lease.close()


def test_the_record_names_its_owner_and_goes_with_the_lease(tmp_path: Path) -> None:
    lease = _acquire(tmp_path, 5)
    owner = identify(os.getpid())
    assert owner is not None
    record = json.loads(lease.record.read_text())
    assert record == {**owner.as_dict(), "base": lease.base, "size": 5, "uid": os.getuid()}
    assert lease.record.stat().st_mode & 0o777 == 0o644
    lease.close()
    lease.close()
    assert [path.name for path in tmp_path.iterdir()] == ["lock"]


def test_two_leases_never_overlap_though_the_first_let_its_sockets_go(tmp_path: Path) -> None:
    first = _acquire(tmp_path, 6, ephemeral=HIGH, pick=_first)
    first.release_sockets(first.ports)
    second = _acquire(tmp_path, 4, ephemeral=HIGH, pick=_first)
    assert not set(first.ports) & set(second.ports)
    first.close()
    second.close()


def test_blocks_to_avoid_are_avoided(tmp_path: Path) -> None:
    first = _acquire(tmp_path, 6, ephemeral=HIGH, pick=_first)
    first.close()
    second = _acquire(tmp_path, 6, ephemeral=HIGH, pick=_first, avoid=[first.ports])
    assert not set(first.ports) & set(second.ports)
    second.close()


def test_no_room_is_a_known_error(tmp_path: Path) -> None:
    with pytest.raises(SystemUnderTestError) as caught:
        ports.acquire(5, folder=tmp_path, ephemeral=(1_026, 65_533))
    assert caught.value.code == "SB-PORTS-NONE"


def test_a_lease_folder_that_is_a_link_is_refused(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "leases").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(SystemUnderTestError) as caught:
        ports.acquire(5, folder=tmp_path / "leases")
    assert caught.value.code == "SB-LEASE-FOLDER"


def test_the_lease_folder_can_be_used_by_every_user(tmp_path: Path) -> None:
    ports.acquire(1, folder=tmp_path / "leases").close()
    assert (tmp_path / "leases").stat().st_mode & 0o7777 == 0o1777
    assert (tmp_path / "leases" / "lock").stat().st_mode & 0o444 == 0o444


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become another user")
def test_two_users_share_the_folder_and_respect_each_other() -> None:
    folder = Path(tempfile.mkdtemp())
    try:
        folder.chmod(0o755)
        mine = ports.acquire(4, folder=folder / "leases", ephemeral=HIGH, pick=_first)
        mine.release_sockets(mine.ports)
        if (child := os.fork()) == 0:
            os.setuid(65_534)
            theirs = ports.acquire(4, folder=folder / "leases", ephemeral=HIGH, pick=_first)
            os._exit(bool(set(theirs.ports) & set(mine.ports)))  # dies with its lease
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert mine.record.exists()
        ports.sweep(folder / "leases")
        assert list((folder / "leases").glob("*.json")) == [mine.record]
    finally:
        shutil.rmtree(folder)


def _holder(folder: Path, claims: Path, *arguments: str) -> subprocess.Popen[str]:
    claims.mkdir(exist_ok=True)
    argv = [sys.executable, str(FAKE), str(folder), str(claims), *arguments]
    return subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def _killed_holder(folder: Path, claims: Path) -> int:
    """Base of the block that a process leased before it was killed."""
    with _holder(folder, claims, "5", "1", "hold") as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        base = int(holder.stdout.readline().removeprefix("held "))
        assert [path.name.split("-")[:3] for path in folder.glob("*.json")] == [[str(base), "5", str(holder.pid)]]
        holder.send_signal(signal.SIGKILL)
    return base


def test_the_lease_of_a_dead_owner_is_reclaimed_and_of_a_living_one_is_not(tmp_path: Path) -> None:
    base = _killed_holder(tmp_path / "leases", tmp_path / "claims")
    slots = ports.candidate_ranges(*ports.ephemeral_range(), 5)[0][::5]
    at_base = slots.index(base)
    again = ports.acquire(5, folder=tmp_path / "leases", pick=lambda _: at_base)
    assert again.base == base, "the dead owner's block is free again"
    other = ports.acquire(5, folder=tmp_path / "leases", pick=lambda _: at_base)
    assert other.base != base, "a living owner's is not"
    assert len(list((tmp_path / "leases").glob("*.json"))) == 2
    again.close()
    other.close()


@pytest.mark.parametrize(
    "name", ["{base}-5-1.json", "{base}-5-1-1-boot.json", "x.json", "{base}-5-99999999999-1-{boot}.json", "-.json"]
)
def test_a_file_that_is_no_record_is_no_lease(tmp_path: Path, name: str) -> None:
    start = ports.candidate_ranges(*HIGH, 5)[0].start
    (tmp_path / name.format(base=start, boot="0" * 36)).write_bytes(b"{}")
    lease = _acquire(tmp_path, 5, ephemeral=HIGH, pick=_first)
    assert lease.base == start
    lease.close()


def test_a_record_from_before_a_reboot_is_void(tmp_path: Path) -> None:
    """Same pid and start time, another boot: as likely as two machines that start alike."""
    own = identify(os.getpid())
    assert own is not None
    start = ports.candidate_ranges(*HIGH, 5)[0].start
    old = tmp_path / f"{start}-5-{own.pid}-{own.start_ticks}-00000000-0000-0000-0000-000000000000.json"
    old.write_bytes(b"{}")
    lease = _acquire(tmp_path, 5, ephemeral=HIGH, pick=_first)
    assert lease.base == start
    assert not old.exists()
    lease.close()


def test_many_processes_leasing_at_once_never_hold_a_port_twice(tmp_path: Path) -> None:
    """24 processes, 8 rounds each; each claims its ports by exclusively created files."""
    leases, claims = tmp_path / "leases", tmp_path / "claims"
    _killed_holder(leases, claims)
    for left in claims.iterdir():
        left.unlink()
    holders = [_holder(leases, claims, "20", "8") for _ in range(24)]
    outputs = [holder.communicate(timeout=120) for holder in holders]
    assert [(holder.returncode, err) for holder, (_, err) in zip(holders, outputs, strict=True)] == [(0, "")] * 24
    times = [float(line) for out, _ in outputs for line in out.split()]
    assert len(times) == 24 * 8
    print(f"lease: median {statistics.median(times) * 1e3:.1f} ms, max {max(times) * 1e3:.1f} ms")
    assert statistics.median(times) < 0.25, "a loaded machine included"
    assert [path.name for path in leases.iterdir()] == ["lock"]

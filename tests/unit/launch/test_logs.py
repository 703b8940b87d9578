"""Evidence and known failures in logs."""

from __future__ import annotations

from pathlib import Path

import pytest

from serving_bench.launch import logs


def test_a_tail_has_the_last_lines_without_colours_and_blank_ones(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_bytes(b"one\n\x1b[31mtwo\x1b[0m\n\n  \nthree\xff" + b"x" * 1000 + b"\n")
    assert logs.tail(log, 2) == ("two", "three\ufffd" + "x" * 494)


def test_a_tail_never_shows_an_earlier_start(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_bytes(b"the first start failed\nthe second is fine\n")
    assert logs.tail(log, 5, start=23) == ("the second is fine",)
    assert logs.tail(log, 5, start=log.stat().st_size) == ("log: empty",)
    assert logs.tail(tmp_path / "none", 5) == ("none: no such log",)


def test_a_tail_of_a_huge_log_is_quick_and_short(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with log.open("wb") as out:
        out.truncate(10**9)  # a sparse file
        out.seek(0, 2)
        out.write(b"\nlast\n")
    assert logs.tail(log, 1) == ("last",)


@pytest.mark.parametrize(
    "line",
    [
        "ERROR dynamo_runtime: Failed to bind to address: Address already in use (os error 98)",
        "ZMQ PUB bind to tcp://0.0.0.0:28111 failed: Zmq error: Address already in use",
        "[Errno 98] error while attempting to bind on address ('127.0.0.1', 8000): address already in use",
        "zmq.error.ZMQError: Address already in use (addr='tcp://*:5557')",
        "listen tcp: EADDRINUSE",
    ],
)
def test_a_port_conflict_is_seen_once_its_line_is_complete(tmp_path: Path, line: str) -> None:
    log = tmp_path / "log"
    log.write_text("starting\n" + line)
    conflicts = logs.PortConflicts(log)
    assert conflicts.look() is None
    with log.open("a") as out:
        out.write("\nmore\n")
    assert conflicts.look() == line
    assert conflicts.look() is None, "each line is read once"


def test_the_last_line_of_a_process_that_has_ended_counts_without_a_newline(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("Address already in use")
    assert logs.PortConflicts(tmp_path / "log").look(ended=True) == "Address already in use"


def test_conflicts_of_an_earlier_start_do_not_count(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("Address already in use\nfine\n")
    assert logs.PortConflicts(tmp_path / "log", 23).look() is None


@pytest.mark.parametrize("line", ["Port 8000 is already in use, trying port 8001", "reused address", "error 980"])
def test_an_engine_that_helped_itself_has_no_conflict(tmp_path: Path, line: str) -> None:
    (tmp_path / "log").write_text(line + "\n")
    assert logs.PortConflicts(tmp_path / "log").look() is None


def test_patterns_that_no_line_matches(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("parser_version=V1\nparser_version=V2\n")
    assert logs.missing_patterns(tmp_path / "log", ["parser_version=V2", "V[12]$"]) == ()
    assert logs.missing_patterns(tmp_path / "log", ["V3", "V2"]) == ("V3",)
    assert logs.missing_patterns(tmp_path / "log", ["V1"], start=18) == ("V1",)


def test_a_traceback_is_found_with_what_follows(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("fine\nTraceback (most recent call last):\n  File x\nValueError: no\n")
    assert logs.traceback_lines(log) == ("Traceback (most recent call last):", "  File x", "ValueError: no")
    assert logs.traceback_lines(log, start=10) == ()
    assert logs.traceback_lines(log, limit=1) == ("Traceback (most recent call last):",)

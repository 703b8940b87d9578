"""Running aiperf under supervision, and telling apart how it can end."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Mapping
from pathlib import Path

from serving_bench.errors import SystemUnderTestError
from serving_bench.launch import logs
from serving_bench.launch.runtimes.process import describe_exit
from serving_bench.launch.watch import Watch

RECORDS = "profile_export.jsonl"
SUMMARY = "profile_export_aiperf.json"
_POLL_S = 0.1
_STOP_S = 1.5
"""Time aiperf gets to end when it is stopped early: its numbers are not used then."""


def check_client(env: Mapping[str, str]) -> None:
    """Raise ``SystemUnderTestError`` (SB-COMMAND) where there is no aiperf, before engines take minutes to start."""
    if shutil.which("aiperf", path=env.get("PATH", os.defpath)) is None:
        raise SystemUnderTestError(
            "aiperf is not in the bench environment, nor in PATH",
            code="SB-COMMAND",
            hint="./scripts/install-bench-env makes a bench environment and prints where; name it with --bench-env",
        )


def run_client(
    argv: tuple[str, ...],
    env: Mapping[str, str],
    folder: Path,
    watch: Watch,
    limit_s: float,
) -> int:
    """Run aiperf to its end; returns its exit status.

    Raises ``SystemUnderTestError`` (SB-REPLICA-DIED, SB-ROUTER-DIED,
    SB-POINT-TIMEOUT, SB-COMMAND) and ``InterruptedRunError``. Whatever happens,
    nothing of aiperf runs afterwards.
    """
    family, log = watch.runtime.family, folder / "client.log"
    strangers = family.orphans()
    end = time.monotonic() + limit_s
    child = watch.runtime.start_client(argv, env, folder)
    watch.heartbeat.restart()
    try:
        while (status := child.exit_status()) is None:
            watch.runtime.check(loading=True)
            if time.monotonic() > end:
                raise SystemUnderTestError(
                    f"aiperf was not done after {limit_s:g} s", code="SB-POINT-TIMEOUT", evidence=logs.tail(log)
                )
            watch.heartbeat.beat(lambda: f"aiperf: {logs.tail(log, 1)[0][:120]}")
            watch.cancel.sleep(_POLL_S)
        watch.runtime.check(loading=True)
        return status
    finally:
        family.stop([child], grace_s=_STOP_S)
        family.stop_orphans(strangers, grace_s=0.0)


def judge(status: int, artifacts: Path, log: Path) -> SystemUnderTestError | None:
    """What was wrong with an aiperf that has ended; None if it did what it should."""
    evidence = logs.tail(log)
    records = artifacts / RECORDS
    ended = f"aiperf {describe_exit(status)}"
    if not records.is_file():
        code, what = (
            ("SB-CLIENT-EXIT", "without any record") if status else ("SB-CLIENT-NO-EXPORT", f"wrote no {RECORDS}")
        )
        return SystemUnderTestError(f"{ended}, {what}", code=code, evidence=evidence)
    completed, first_error = has_completed(records)
    if not completed:
        reason = (f"the first error: {first_error}",) if first_error else ()
        return SystemUnderTestError(
            f"{ended}, no request of the profiling phase was completed",
            code="SB-CLIENT-NO-RECORDS",
            evidence=(*reason, *evidence),
        )
    if status:
        return SystemUnderTestError(f"{ended}, with a part of the records", code="SB-CLIENT-EXIT", evidence=evidence)
    if not (artifacts / SUMMARY).is_file():
        return SystemUnderTestError(f"{ended}, wrote no {SUMMARY}", code="SB-CLIENT-NO-SUMMARY", evidence=evidence)
    return None


def has_completed(records: Path) -> tuple[bool, str | None]:
    """Whether any profiling request was completed; otherwise the first error that a record holds."""
    first_error: str | None = None
    with records.open("rb") as lines:
        for line in lines:
            try:
                record = json.loads(line)
            except (ValueError, RecursionError):  # cut off in the middle: a record that is not there
                continue
            metadata = record.get("metadata") if isinstance(record, dict) else None
            if not isinstance(metadata, dict):
                continue
            error = record.get("error")
            if not error and metadata.get("benchmark_phase") == "profiling":
                return True, None
            if error and first_error is None:
                first_error = json.dumps(error)[:500]
    return False, first_error

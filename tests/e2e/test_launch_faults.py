"""What goes wrong, goes wrong with the right words, and leaves nothing: real processes throughout."""

from __future__ import annotations

import io
import json
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest

from serving_bench.contracts import CacheState, Expect, ProcessSpec, Timeouts
from serving_bench.files import write_model
from serving_bench.launch import ports
from serving_bench.launch.points import Points
from serving_bench.launch.step import LaunchOptions
from serving_bench.launch.step import run as launch

if TYPE_CHECKING:
    from tests.e2e.conftest import Plans, Run, Sandbox

pytestmark = pytest.mark.e2e

ROOT = Path(__file__).parents[2]
FRONTEND = ("python3", "-m", "dynamo.frontend", "--router-mode", "kv", "--router-min-initial-workers", "2")
MOCKER = ("python3", "-m", "dynamo.mocker", "--block-size", "16", "--speedup-ratio", "20")


def _assert_failed(run: Run, code: str, *, stage: str, evidence: str) -> None:
    """The status, the last lines of output and the evidence tell the same story."""
    status = run.status()
    assert (status["outcome"], status["code"], status["stage"]) == ("failed", code, stage), run.output()
    assert any(evidence in line for line in status["evidence"]), status["evidence"]
    printed = run.output()
    assert f"failed while {stage}: {status['message']} [{code}]" in printed
    assert evidence in printed
    assert "Traceback" not in printed


def _assert_nothing_left(run: Run) -> None:
    left = run.sandbox.census(run.out)
    assert (left.processes, left.listening, left.leases, left.files) == ((), (), (), ())


def test_a_replica_killed_under_load_ends_the_run_at_once(start: Callable[..., Run], plans: Plans) -> None:
    run = start(plans.endless())
    run.wait_for_load("c2")
    os.kill(run.pid_of("replica.1"), signal.SIGKILL)
    killed_ns = time.time_ns()
    assert run.end() == 1
    _assert_failed(run, "SB-REPLICA-DIED", stage="loading", evidence="dynamo")
    assert run.status()["message"] == "replica.1 was killed by SIGKILL"
    point = run.point("c2")
    assert (point["outcome"], point["code"], point["replica_exits"]) == ("failed", "SB-REPLICA-DIED", {"1": -9})
    assert (point["ended_ns"] - killed_ns) / 1e9 < 2.0, "load was ended"
    assert (run.out / "points/c2/metrics-before/router.prom").is_file()
    assert list((run.out / "trace").glob("start0.*.jsonl.gz")), "the trace is there as far as it got"
    _assert_nothing_left(run)


def test_a_router_killed_under_load_is_told_apart(start: Callable[..., Run], plans: Plans, fake_bench: Path) -> None:
    scenario = plans.small().scenario.model_copy(update={"request_timeout_s": 13.0})
    run = start(plans.small(scenario=scenario), fake_bench)
    run.wait_for_line("  client: ")
    os.kill(run.pid_of("router"), signal.SIGKILL)
    assert run.end() == 1
    _assert_failed(run, "SB-ROUTER-DIED", stage="loading", evidence="http")
    assert run.point("c2")["replica_exits"] == {"router": -9}
    _assert_nothing_left(run)


def test_an_aiperf_that_is_killed_is_not_taken_for_a_result(start: Callable[..., Run], plans: Plans) -> None:
    run = start(plans.endless())
    run.wait_for_load("c2")
    os.kill(run.pid_of("client"), signal.SIGKILL)
    assert run.end() == 1
    status = run.status()
    assert status["code"] in {"SB-CLIENT-EXIT", "SB-CLIENT-NO-RECORDS"}
    assert "killed by SIGKILL" in status["message"]
    assert run.point("c2")["client_exit"] == -9
    _assert_nothing_left(run)


def test_an_aiperf_that_hangs_meets_the_points_deadline(
    start: Callable[..., Run], plans: Plans, fake_bench: Path
) -> None:
    scenario = plans.small().scenario.model_copy(update={"request_timeout_s": 13.0})
    run = start(plans.small(scenario=scenario, timeouts=Timeouts(ready_s=60, point_s=3, stop_s=10)), fake_bench)
    assert run.end() == 1
    _assert_failed(run, "SB-POINT-TIMEOUT", stage="loading", evidence="waiting for something that never comes")
    assert "… 2 s: aiperf: waiting for something" in run.output(), "a heartbeat shows aiperf's last line"
    _assert_nothing_left(run)


def test_an_engine_that_exits_at_once_ends_the_wait(start: Callable[..., Run], plans: Plans) -> None:
    run = start(plans.fake_engine("garbage_engine.py"))
    begun = time.monotonic()
    assert run.end() == 1
    assert time.monotonic() - begun < 15, "nobody waited for the deadline of 60 s"
    _assert_failed(run, "SB-ENGINE-EXIT", stage="starting", evidence="expected 4096, found 17")
    assert "exited with status 3" in run.status()["message"]
    assert not (run.out / "points").exists()
    _assert_nothing_left(run)


def test_an_engine_that_is_never_healthy_meets_the_deadline(
    start: Callable[..., Run], plans: Plans, sandbox: Sandbox
) -> None:
    run = start(
        plans.fake_engine("sick_engine.py", sandbox.folder / "tree", timeouts=Timeouts(ready_s=4, point_s=60, stop_s=3))
    )
    assert run.end() == 1
    _assert_failed(run, "SB-READY-TIMEOUT", stage="starting", evidence="loading weights, shard 1 of 900")
    assert "not ready after 4 s: no replica.0 healthy (HTTP 503)" in run.status()["message"]
    assert "… 2 s: waiting for replica.0 healthy" in run.output()
    trees = [path.read_text().split() for path in sandbox.folder.glob("tree.*")]
    assert len(trees) == 2
    assert [pid for tree in trees for pid in tree if psutil.pid_exists(int(pid))] == [], "not even what ignores TERM"
    _assert_nothing_left(run)


@pytest.mark.parametrize("name", ["DYN_SYSTEM_PORT", "zmq-kv-events-ports", "http-port"])
def test_a_port_taken_before_the_start_gets_a_fresh_block(
    start: Callable[..., Run], plans: Plans, sandbox: Sandbox, fake_bench: Path, name: str
) -> None:
    plan = plans.fake_engine("port_thief.py", sandbox.folder / "stolen", name, "--", *MOCKER)
    if name == "http-port":
        thief = (*plan.engine.argv[:4], "--", *FRONTEND)
        plan = plans.small(router=ProcessSpec(kind="dynamo.frontend", argv=thief))
    run = start(plan, fake_bench)
    assert run.end() == 0, run.output()
    starts = json.loads((run.out / "ports.json").read_text())["starts"]
    blocks = [{port for ports in entry.values() if isinstance(ports, list) for port in ports} for entry in starts]
    assert len(blocks) == 2
    assert not blocks[0] & blocks[1]
    assert "Address already in use" in run.output()
    assert "attempt 2 of 3" in run.output()
    logs = "".join((run.out / name).read_text() for name in ("server.0.log", "server.1.log", "router.log"))
    assert "Address already in use" in logs, "the log was appended to, not started again"
    assert "an honest start" in logs
    events = [json.loads(line) for line in (run.out / "events.jsonl").read_text().splitlines()]
    assert [event["attempt"] for event in events if event["event"] == "port-in-use"] == [1]
    _assert_nothing_left(run)


def test_a_port_that_is_taken_every_time_is_given_up_on(
    start: Callable[..., Run], plans: Plans, sandbox: Sandbox
) -> None:
    run = start(plans.fake_engine("port_thief.py", "-", "DYN_SYSTEM_PORT", "--", *MOCKER))
    assert run.end() == 1
    _assert_failed(run, "SB-PORT-IN-USE", stage="starting", evidence="Address already in use")
    assert run.status()["retriable"] is True
    assert len(json.loads((run.out / "ports.json").read_text())["starts"]) == 3
    _assert_nothing_left(run)


def test_a_log_without_the_expected_line_ends_the_run_before_load(
    start: Callable[..., Run], plans: Plans, fake_bench: Path
) -> None:
    run = start(plans.small(expect=Expect(router_log=("Starting HTTP", "parser_version=V2"))), fake_bench)
    assert run.end() == 1
    _assert_failed(run, "SB-EXPECT-MISSING", stage="starting", evidence="dynamo_llm")
    assert "its log has no line that matches 'parser_version=V2'" in run.status()["message"]
    assert not (run.out / "points").exists()
    _assert_nothing_left(run)


def test_a_bug_is_written_down_raised_and_cleaned_up_after(
    plans: Plans, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("nobody thought of this")

    monkeypatch.setattr(Points, "run", broken)
    write_model(sandbox.folder / "plan.json", plans.small())
    out = sandbox.folder / "out"
    options = LaunchOptions(sandbox.folder / "plan.json", out, ROOT, sandbox.bench_env)
    with pytest.raises(RuntimeError, match="nobody thought of this"):
        launch(options, sandbox.env(), io.StringIO())
    status = json.loads((out / "status.json").read_text())
    assert (status["outcome"], status["stage"], status["code"]) == ("failed", "loading", "SB-BUG")
    assert status["message"] == "RuntimeError: nobody thought of this"
    left = sandbox.census(out)
    assert (left.processes, left.listening, left.files) == ((), (), ())
    assert [record for record in ports.records() if record.owner.pid == os.getpid()] == []


def test_a_command_that_is_not_there(start: Callable[..., Run], plans: Plans) -> None:
    run = start(plans.small(engine=ProcessSpec(kind="dynamo.mocker", argv=("no-such-engine",))))
    assert run.end() == 1
    assert run.status()["code"] == "SB-COMMAND"
    assert "no-such-engine cannot be started: No such file or directory" in run.output()
    _assert_nothing_left(run)


def test_a_dataset_that_is_not_the_locked_one_is_not_used(start: Callable[..., Run], plans: Plans) -> None:
    plan = plans.small()
    dataset = plan.scenario.dataset.model_copy(update={"sha256": "f" * 64})
    run = start(plan.model_copy(update={"scenario": plan.scenario.model_copy(update={"dataset": dataset})}))
    assert run.end() == 1
    assert (run.status()["outcome"], run.status()["code"]) == ("failed", "SB-DATASET-DIGEST")
    assert not (run.out / "server.0.log").exists()
    _assert_nothing_left(run)


@pytest.mark.parametrize(("cache", "starts"), [(CacheState.FRESH, 2), (CacheState.CARRY, 1)])
def test_fresh_points_start_anew_and_carried_ones_do_not(
    start: Callable[..., Run], plans: Plans, fake_bench: Path, cache: CacheState, starts: int
) -> None:
    run = start(plans.small(conc=(1, 2), cache=cache), fake_bench)
    assert run.end() == 0, run.output()
    first, second = run.point("c1"), run.point("c2")
    assert [len(replica["worker_ids"]) for replica in first["replicas"]] == [1, 1]
    assert [len(replica["worker_ids"]) for replica in second["replicas"]] == [starts, starts]
    assert len(list((run.out / "trace").glob("start*.jsonl.gz"))) == starts
    assert len(json.loads((run.out / "agg_bmk.json").read_text())) == 2
    served = (run.out / "points/c2/metrics-before/router.prom").read_text()
    [count] = [line for line in served.splitlines() if line.startswith("dynamo_frontend_cached_tokens_count{")]
    assert float(count.rpartition(" ")[2]) == (3 if starts == 2 else 5), "readiness alone, or the first point's too"
    _assert_nothing_left(run)

"""A run that passes: real Dynamo router, two real mocker replicas, real aiperf; looked at from all sides."""

from __future__ import annotations

import gzip
import json
import os
import stat
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import psutil
import pytest

from serving_bench.contracts import Expect, Plan, PointResult, RunStatus
from serving_bench.files import read_model, sha256

if TYPE_CHECKING:
    from tests.e2e.conftest import Census, Plans, Run, Sandbox

pytestmark = pytest.mark.e2e


class Observer(threading.Thread):
    """Notes the environment of every process of the run while it runs."""

    def __init__(self, run: Run) -> None:
        super().__init__(daemon=True)
        self._run = run
        self.environments: dict[str, dict[str, str]] = {}
        self.commands: dict[str, list[str]] = {}

    def run(self) -> None:
        while self._run.popen.poll() is None:
            try:
                entries = json.loads((self._run.out / "processes.json").read_text())
                for entry in entries:
                    process = psutil.Process(entry["pid"])
                    self.environments[entry["name"]] = process.environ()
                    self.commands[entry["name"]] = process.cmdline()
            except (OSError, psutil.Error):
                time.sleep(0.02)
            time.sleep(0.1)


class Passed:
    """The finished run and what was seen of it."""

    def __init__(self, run: Run, observer: Observer, exit_status: int, left: Census) -> None:
        self.run, self.observer, self.exit_status, self.left = run, observer, exit_status, left
        self.out = run.out

    def json(self, path: str) -> Any:
        return json.loads((self.out / path).read_text())

    def records(self) -> list[dict[str, Any]]:
        lines = (self.out / "points/c2/aiperf/profile_export.jsonl").read_text().splitlines()
        return [json.loads(line) for line in lines]

    def trace(self) -> list[dict[str, Any]]:
        events = []
        for path in sorted((self.out / "trace").glob("start0.*.jsonl.gz")):
            with gzip.open(path, "rt") as lines:
                events += [json.loads(line) for line in lines]
        return events


@pytest.fixture(scope="module")
def passed(module_sandbox: Sandbox, plans: Plans, start_run: Callable[[Sandbox, Plan], Run]) -> Passed:
    run = start_run(module_sandbox, plans.small(expect=Expect(router_log=("Starting HTTP",), server_log=("mocker",))))
    observer = Observer(run)
    observer.start()
    exit_status = run.end(timeout_s=150)
    observer.join()
    return Passed(run, observer, exit_status, module_sandbox.census(run.out))


def test_it_passes_and_says_so(passed: Passed) -> None:
    assert passed.exit_status == 0, passed.run.output()
    status = read_model(passed.out / "status.json", RunStatus)
    assert (status.outcome, status.stage, status.code) == ("passed", "done", None)
    assert set(status.timings_s) == {
        "planned", "leased", "starting", "ready", "loading", "stopping", "point c2",
    }  # fmt: skip


def test_nothing_is_left(passed: Passed) -> None:
    assert passed.left.processes == ()
    assert passed.left.listening == ()
    assert passed.left.leases == ()
    assert passed.left.files == (), "HOME and TMPDIR are as they were"


def test_the_run_directory_is_complete(passed: Passed) -> None:
    names = {str(path.relative_to(passed.out)) for path in passed.out.rglob("*") if path.is_file()}
    expected = {
        "plan.json", "status.json", "events.jsonl", "ports.json", "processes.json", "environment.json", "dataset.txt",
        "rooms.csv", "server.0.log", "server.1.log", "router.log", "trace/start0.000000.jsonl.gz", "agg_bmk.json",
        "points/c2/client.log", "points/c2/point.json", "points/c2/aiperf/profile_export.jsonl",
        "points/c2/aiperf/profile_export_aiperf.json", "points/c2/aiperf/server_metrics_export.jsonl",
        *(f"points/c2/metrics-{when}/{name}.prom" for when in ("before", "after")
          for name in ("replica.0", "replica.1", "router")),
    }  # fmt: skip
    assert expected <= names
    assert {name for name in names if "/" not in name} == {name for name in expected if "/" not in name}
    assert "points/c2/aiperf/inputs.json" not in names, "prompts do not travel with results"


def test_files_belong_to_the_user_and_can_be_read(passed: Passed) -> None:
    for path in (passed.out, *passed.out.rglob("*")):
        assert path.stat().st_uid == os.getuid()
    for name in ("status.json", "agg_bmk.json", "points/c2/point.json", "server.0.log"):
        assert (passed.out / name).stat().st_mode & stat.S_IROTH


def test_dataset_and_rooms_are_those_of_the_plan(passed: Passed) -> None:
    plan = read_model(passed.out / "plan.json", Plan)
    dataset = plan.scenario.dataset
    assert (passed.out / "dataset.txt").read_text().splitlines() == [
        "id: voice-agent-small",
        f"sha256: {dataset.sha256}",
        "path: voice-agent",
        f"rooms_sha256: {dataset.rooms_sha256}",
    ]
    assert sha256((passed.out / "rooms.csv").read_bytes()) == dataset.rooms_sha256


def test_every_replica_has_its_own_worker_id_and_both_served(passed: Passed) -> None:
    point = read_model(passed.out / "points/c2/point.json", PointResult)
    workers = [replica.worker_ids for replica in point.replicas]
    assert [len(ids) for ids in workers] == [1, 1]
    by_worker = {event["request"]["worker"]["decode_worker_id"] for event in _requests(passed)}
    assert {str(worker) for worker in by_worker} == {ids[0] for ids in workers}
    for replica in point.replicas:
        own = (passed.out / f"points/c2/metrics-after/replica.{replica.index}.prom").read_text()
        assert f'worker_id="{int(replica.worker_ids[0]):x}"' in own


def _requests(passed: Passed) -> list[dict[str, Any]]:
    events = [event.get("event", event) for event in passed.trace()]
    return [event for event in events if event.get("event_type") == "request_end"]


def test_every_record_is_in_the_request_trace(passed: Passed) -> None:
    traced = [event["request"].get("x_request_id") for event in _requests(passed)]
    recorded = [record["metadata"]["x_request_id"] for record in passed.records()]
    phases = [record["metadata"]["benchmark_phase"] for record in passed.records()]
    assert {"warmup", "profiling"} == set(phases)
    assert len(set(recorded)) == len(recorded)
    assert sorted(name for name in traced if name is not None) == sorted(recorded)
    assert traced.count(None) == 3, "the readiness completions, which are no load"


def test_point_and_row_say_what_aiperf_says(passed: Passed) -> None:
    records = [record for record in passed.records() if record["metadata"]["benchmark_phase"] == "profiling"]
    [row] = passed.json("agg_bmk.json")
    assert (row["conc"], row["replicas"], row["tp"], row["repeat"]) == (2, 2, 0, 0)
    assert row["num_requests_total"] == row["num_requests_completed"] == len(records)
    assert row["num_requests_failed"] == 0
    times = [record["metrics"]["time_to_first_token"]["value"] for record in records]
    assert row["ttft_mean_ms"] == pytest.approx(sum(times) / len(times))
    assert row["ttft_p99_ms"] is None, "fewer than 100 requests have no 99th percentile"
    point = read_model(passed.out / "points/c2/point.json", PointResult)
    assert (point.outcome, point.client_exit, point.replica_exits) == ("passed", 0, {})
    assert abs(point.clock_step_s) < 0.5
    first = min(record["metadata"]["request_start_ns"] for record in records)
    assert point.ended_ns is not None
    assert point.started_ns < first < point.ended_ns


def test_scrapes_stand_on_both_sides_of_the_load(passed: Passed) -> None:
    def served(when: str, index: int) -> float:
        text = (passed.out / f"points/c2/metrics-{when}/replica.{index}.prom").read_text()
        lines = [line for line in text.splitlines() if line.startswith("dynamo_component_requests_total{")]
        return sum(float(line.rpartition(" ")[2]) for line in lines if 'dynamo_endpoint="generate"' in line)

    total = sum(served("after", index) - served("before", index) for index in (0, 1))
    assert total == len(passed.records())


def test_ports_and_variables_reach_only_the_process_they_are_for(passed: Passed) -> None:
    [start] = passed.json("ports.json")["starts"]
    environments = passed.observer.environments
    replicas = [environments["replica.0"], environments["replica.1"]]
    own = [{str(port) for port in start[f"replica.{index}"]} for index in (0, 1)]
    assert not own[0] & own[1]
    for index, env in enumerate(replicas):
        assert env["DYN_SYSTEM_PORT"] in own[index]
        assert not set(env.values()) & own[1 - index]
        assert "DYN_REQUEST_TRACE" not in env
        assert "--http-port" not in passed.observer.commands[f"replica.{index}"]
    router = environments["router"]
    assert "DYN_SYSTEM_PORT" not in router, "neither a replica's nor the one that the shell had set"
    assert not set(router.values()) & (own[0] | own[1])
    assert "DYN_ROUTER_MODE" not in router
    assert router["DYN_NAMESPACE"] == replicas[0]["DYN_NAMESPACE"]
    events = [command[command.index("--zmq-kv-events-ports") + 1] for command in _replica_commands(passed)]
    assert len(set(events)) == 2
    assert set(events) <= own[0] | own[1]


def _replica_commands(passed: Passed) -> list[list[str]]:
    return [passed.observer.commands[f"replica.{index}"] for index in (0, 1)]


def test_everything_that_can_be_is_on_loopback_and_the_rest_is_listed(passed: Passed) -> None:
    sockets = passed.json("environment.json")["open_sockets"]
    leased = [(entry["owner"], entry["leased"]) for entry in sockets if entry["leased"]]
    assert sorted(leased) == [("replica.0", True), ("replica.1", True)], "the mocker's KV events, nothing else of ours"
    assert {entry["owner"] for entry in sockets} <= {"replica.0", "replica.1", "router"}
    per_owner = {owner: sum(entry["owner"] == owner for entry in sockets) for owner in ("replica.0", "router")}
    assert per_owner["replica.0"] <= 5, "Dynamo 1.6.1 leaves four event sockets and the KV events open"
    assert per_owner["router"] <= 2


def test_no_secret_is_written_down(passed: Passed) -> None:
    written = b"".join(path.read_bytes() for path in passed.out.rglob("*") if path.is_file())
    assert b"hf_secret" not in written
    assert b'"hush"' not in written
    assert passed.json("plan.json")["router"]["env"] == {"SOME_API_KEY": "***"}


def test_environment_says_what_it_ran_on(passed: Passed) -> None:
    facts = passed.json("environment.json")
    assert {"ai-dynamo", "ai-dynamo-runtime", "aiperf"} <= set(facts["bench"]["packages"])
    assert facts["host"]["cpus"] == os.cpu_count()
    assert facts["gpus"] == {"devices": [], "note": "nvidia-smi is absent or failed"} or facts["gpus"]["devices"]


def test_logs_have_no_colours_and_commands_are_echoed(passed: Passed) -> None:
    for name in ("server.0.log", "server.1.log", "router.log"):
        assert b"\x1b[" not in (passed.out / name).read_bytes()
    echoed = passed.run.output()
    assert "\n  router: python3 -m dynamo.frontend --router-mode kv" in echoed
    assert "\n  client: aiperf profile --model demo-tiny" in echoed
    for stage in ("leased", "starting", "ready", "loading", "stopping"):
        assert f"\n{stage}" in echoed


def test_events_have_every_stage_in_order(passed: Passed) -> None:
    events = [json.loads(line) for line in (passed.out / "events.jsonl").read_text().splitlines()]
    stages = [event["stage"] for event in events if event["event"] == "stage"]
    assert stages == ["leased", "starting", "ready", "loading", "stopping"]
    times = [event["time_ns"] for event in events]
    assert times == sorted(times)
    assert [event["process"] for event in events if event["event"] == "start"] == [
        "replica.0",
        "replica.1",
        "router",
        "client",
    ]


def test_a_directory_that_holds_something_is_refused(
    passed: Passed, start_run: Callable[[Sandbox, Plan], Run], plans: Plans
) -> None:
    before = {path: path.stat().st_mtime_ns for path in passed.out.rglob("*")}
    again = start_run(passed.run.sandbox, plans.small())
    assert again.end() == 1
    assert "[SB-OUT-NOT-EMPTY]" in again.output()
    assert {path: path.stat().st_mtime_ns for path in passed.out.rglob("*")} == before

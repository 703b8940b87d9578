"""Shared by the end-to-end tests: the bench environment, small plans, runs, and a census of what is left.

``SERVING_BENCH_ENV`` names a virtual environment with ai-dynamo and aiperf.
"""

from __future__ import annotations

import json
import os
import secrets
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import pytest

from serving_bench.contracts import (
    ClusterSpec,
    DatasetSpec,
    LoadSpec,
    ModelSpec,
    Plan,
    ProcessSpec,
    Runtime,
    ScenarioSpec,
    Timeouts,
    WarmupSpec,
)
from serving_bench.datasets.generators import run_generator
from serving_bench.files import sha256, write_model
from serving_bench.launch import ports
from serving_bench.process import Family

ROOT = Path(__file__).parents[2]
FAKES = ROOT / "tests" / "fakes"
MOCKER = "python3 -m dynamo.mocker --block-size 16 --speedup-ratio 20"
FRONTEND = (
    "python3 -m dynamo.frontend --router-mode kv --router-prefill-load-scale 16 --router-session-affinity-ttl-secs 1800"
    " --router-session-affinity-mode hard --router-min-initial-workers 2"
)
MARK = "SERVING_BENCH_TEST_RUN"


@pytest.fixture(scope="session")
def bench_env() -> Path:
    """The bench environment; its absence is a failure, for a skipped test proves nothing."""
    value = os.environ.get("SERVING_BENCH_ENV")
    if not value:
        pytest.fail("set SERVING_BENCH_ENV to a virtual environment with ai-dynamo and aiperf (./scripts/test does)")
    folder = Path(value).absolute()
    for name in ("python3", "aiperf"):
        if not (folder / "bin" / name).exists():
            pytest.fail(f"SERVING_BENCH_ENV={value}: there is no bin/{name}")
    return folder


@dataclass(frozen=True)
class Census:
    """What is there of a run: processes, listening ports, leases, files in temporary folders."""

    processes: tuple[str, ...] = ()
    listening: tuple[int, ...] = ()
    leases: tuple[str, ...] = ()
    files: tuple[str, ...] = ()


@dataclass
class Sandbox:
    """A private HOME and TMPDIR, and an environment variable that marks every process of a run."""

    bench_env: Path
    folder: Path
    family: Family
    mark: str = field(default_factory=lambda: secrets.token_hex(8))

    def __post_init__(self) -> None:
        for name in ("home", "tmp"):
            (self.folder / name).mkdir()

    def env(self) -> dict[str, str]:
        kept = {"PATH", "LANG"}
        env = {name: value for name, value in os.environ.items() if name in kept}
        own = {"HOME": str(self.folder / "home"), "TMPDIR": str(self.folder / "tmp"), MARK: self.mark}
        # What a careless shell might have set: none of it may reach the wrong process.
        leaks = {"DYN_SYSTEM_PORT": "19999", "DYN_ROUTER_MODE": "random", "HF_HUB_OFFLINE": "1"}
        return env | own | leaks | {"HF_TOKEN": "hf_secret"}

    def processes(self) -> list[psutil.Process]:
        """Processes that carry the mark, and descendants of this process that may have dropped it."""
        found = set(self.family.members())
        for process in psutil.process_iter():
            try:
                if process.environ().get(MARK) == self.mark:
                    found.add(process)
            except psutil.Error:
                continue
        return sorted(found, key=lambda process: process.pid)

    def census(self, out: Path | None = None) -> Census:
        processes = self.processes()
        listening = {
            connection.laddr.port
            for process in processes
            for connection in process.net_connections(kind="tcp")
            if connection.status == psutil.CONN_LISTEN
        }
        if out is not None and (out / "ports.json").exists():
            starts = json.loads((out / "ports.json").read_text())["starts"]
            leased = {port for start in starts for own in start.values() if isinstance(own, list) for port in own}
            listening |= {port for port in leased if _listens(port)}
        return Census(
            processes=tuple(f"{process.pid} {process.name()}" for process in processes),
            listening=tuple(sorted(listening)),
            leases=tuple(record.path.name for record in _own_leases(out)),
            files=tuple(sorted(str(path) for name in ("home", "tmp") for path in (self.folder / name).rglob("*"))),
        )


def _listens(port: int) -> bool:
    """Whether anybody on this host listens on the port, by the kernel's own table."""
    needle = f":{port:04X}"
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        for line in Path(table).read_text().splitlines()[1:]:
            columns = line.split()
            if columns[1].endswith(needle) and columns[3] == "0A":
                return True
    return False


def _own_leases(out: Path | None) -> list[ports.Record]:
    if out is None or not (out / "processes.json").exists() or not ports.LEASE_DIR.exists():
        return []
    pids = {entry["pid"] for entry in json.loads((out / "processes.json").read_text())}
    return [record for record in ports.records() if record.owner.pid in pids]


@pytest.fixture
def sandbox(bench_env: Path) -> Iterator[Sandbox]:
    yield from make_sandbox(bench_env)


@pytest.fixture(scope="module")
def module_sandbox(bench_env: Path) -> Iterator[Sandbox]:
    yield from make_sandbox(bench_env)


def make_sandbox(bench_env: Path) -> Iterator[Sandbox]:
    """Short paths, for there are sockets below; after the test nothing may run."""
    folder = Path(tempfile.mkdtemp(prefix="sb"))
    made = Sandbox(bench_env, folder, Family())
    try:
        yield made
    finally:
        left = made.processes()
        made.family.stop_all(grace_s=0.0)
        shutil.rmtree(folder)
        assert left == []


@dataclass
class Run:
    """A launch as a process of its own."""

    sandbox: Sandbox
    out: Path
    popen: subprocess.Popen[str]
    log: Path

    def output(self) -> str:
        return self.log.read_text(encoding="utf-8")

    def wait_for(self, what: str, found: Callable[[], bool], timeout_s: float = 60.0) -> None:
        end = time.monotonic() + timeout_s
        while not found():
            assert self.popen.poll() is None, f"launch ended before {what}:\n{self.output()}"
            assert time.monotonic() < end, f"{what} did not come:\n{self.output()}"
            time.sleep(0.02)

    def wait_for_line(self, start: str) -> None:
        self.wait_for(f"the line {start!r}", lambda: f"\n{start}" in self.output())

    def wait_for_load(self, point: str) -> None:
        """Until aiperf sends requests of the profiling phase."""
        log = self.out / "points" / point / "client.log"
        self.wait_for(
            "load", lambda: log.exists() and "Phase profiling (profiling) started" in log.read_text(errors="replace")
        )

    def pid_of(self, name: str) -> int:
        entries = json.loads((self.out / "processes.json").read_text())
        return int(next(entry["pid"] for entry in reversed(entries) if entry["name"] == name))

    def end(self, timeout_s: float = 60.0) -> int:
        return self.popen.wait(timeout=timeout_s)

    def signal(self, number: signal.Signals) -> None:
        self.popen.send_signal(number)

    def status(self) -> dict[str, Any]:
        return dict(json.loads((self.out / "status.json").read_text()))

    def point(self, name: str) -> dict[str, Any]:
        return dict(json.loads((self.out / "points" / name / "point.json").read_text()))


def _start_run(sandbox: Sandbox, plan: Plan, bench_env: Path | None = None) -> Run:
    """Start launch on a plan, without waiting for it."""
    out, log = sandbox.folder / "out", sandbox.folder / "launch.log"
    write_model(sandbox.folder / "plan.json", plan)
    argv = [
        sys.executable, "-m", "serving_bench", "launch", "--plan", str(sandbox.folder / "plan.json"), "--out", str(out),
        "--root", str(ROOT), "--bench-env", str(bench_env or sandbox.bench_env), "--heartbeat", "2",
    ]  # fmt: skip
    with log.open("wb") as sink:
        popen = subprocess.Popen(argv, env=sandbox.env(), stdout=sink, stderr=subprocess.STDOUT, text=True)
    return Run(sandbox, out, popen, log)


@pytest.fixture(scope="session")
def start_run() -> Callable[[Sandbox, Plan], Run]:
    """Start a launch for several tests; whoever does must wait for it."""
    return _start_run


@pytest.fixture
def fake_bench(sandbox: Sandbox) -> Path:
    """The bench environment with tests/fakes/aiperf.py as its aiperf, for what does not need real load."""
    folder = sandbox.folder / "bench" / "bin"
    folder.mkdir(parents=True)
    python = sandbox.bench_env / "bin" / "python3"
    for name, command in (("python3", f"{python}"), ("aiperf", f"{python} {FAKES / 'aiperf.py'}")):
        (folder / name).write_text(f'#!/bin/sh\nexec {command} "$@"\n')
        (folder / name).chmod(0o755)
    return folder.parent


@pytest.fixture
def start(sandbox: Sandbox) -> Iterator[Callable[..., Run]]:
    """Start a launch that is ended with the test, come what may."""
    runs: list[Run] = []

    def begin(plan: Plan, bench_env: Path | None = None) -> Run:
        runs.append(_start_run(sandbox, plan, bench_env))
        return runs[-1]

    yield begin
    for run in runs:
        if run.popen.poll() is None:
            run.popen.kill()
            run.popen.wait()


def _scenario() -> ScenarioSpec:
    arguments = {
        "rooms": 6, "warmup_rooms": 2, "handover_every": 3, "min_turns": 2, "max_turns": 4, "prompt_rules": 6,
    }  # fmt: skip
    made = run_generator("voice-agent", arguments)
    dataset = DatasetSpec(
        id="voice-agent-small",
        format="multi_turn",
        sha256=sha256(made.conversations),
        generator="voice-agent",
        arguments=arguments,
        rooms_sha256=sha256(made.rooms),
    )
    return ScenarioSpec(
        name="small",
        dataset=dataset,
        warmup=WarmupSpec(conversations=made.warmup_conversations),
        load=LoadSpec(conversations=made.conversation_count - made.warmup_conversations),
        request_timeout_s=30,
    )


class Plans:
    """Small plans for tests."""

    def small(self, **changes: Any) -> Plan:
        """Two mocker replicas behind Dynamo's KV router, a handful of conversations; ``changes`` are plan fields."""
        fields: dict[str, Any] = {
            "config": "small",
            "source": "small.yaml",
            "cluster": ClusterSpec(name="here", runs_on=("ubuntu-latest",), runtime=Runtime.PROCESS),
            "model": ModelSpec(served_name="demo-tiny", path="configs/models/demo-tiny"),
            "framework": "mocker",
            "router_profile": "dynamo",
            "engine": ProcessSpec(kind="dynamo.mocker", argv=tuple(shlex.split(MOCKER))),
            "router": ProcessSpec(
                kind="dynamo.frontend", argv=tuple(shlex.split(FRONTEND)), env={"SOME_API_KEY": "hush"}
            ),
            "replicas": 2,
            "scenario": _scenario(),
            "conc": (2,),
            "timeouts": Timeouts(ready_s=60, point_s=120, stop_s=20),
            "comparability": "0" * 16,
            "workload": "1" * 16,
        }
        return Plan(**(fields | changes))

    def endless(self, **changes: Any) -> Plan:
        """The same with load that lasts until somebody ends it."""
        plan = self.small(**changes)
        scenario = plan.scenario.model_copy(update={"load": LoadSpec(duration_s=100)})
        return plan.model_copy(update={"scenario": scenario})

    def fake_engine(self, *argv: str | Path, **changes: Any) -> Plan:
        """The same with a script of tests/fakes in the engine's place."""
        words = ("python3", str(FAKES / argv[0]), *map(str, argv[1:]))
        return self.small(engine=ProcessSpec(kind="dynamo.mocker", argv=words), **changes)


@pytest.fixture(scope="session")
def plans() -> Plans:
    return Plans()

"""rehearse.yml as it stands, run by act on this machine: render → launch → analyze with real Dynamo and aiperf."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

pytestmark = pytest.mark.e2e

STANDINS = Path(__file__).resolve().parent / "standins"
CONC = 16  # the more callers at once, the sooner the demo's conversations are over


@dataclass(frozen=True)
class Rehearsal:
    """What a run of the workflow left: act's log, its artifacts, and the processes that outlived it."""

    status: int
    events: list[dict[str, Any]]
    artifacts: Path
    leftovers: list[str]

    def of(self, command: str) -> list[dict[str, Any]]:
        return [event for event in self.events if event.get("command") == command]

    def output(self, name: str) -> str:
        values = [event["arg"] for event in self.of("set-output") if event.get("name") == name]
        assert values, f"no step set the output {name}"
        return str(values[0])

    def log(self) -> str:
        return "\n".join(str(event.get("msg", "")).rstrip() for event in self.events)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def pins(workflow: Path) -> dict[str, str]:
    """Foreign action → the reference that the workflow pins."""
    return dict(re.findall(r"uses: (actions/[\w-]+)@(\w+)", workflow.read_text(encoding="utf-8")))


def command(act: str, sources: Path, folder: Path, env: Mapping[str, str]) -> list[str]:
    workflow = sources / ".github/workflows/rehearse.yml"
    event = folder / "event.json"
    event.write_text(json.dumps({"inputs": {"configs": "demo-2rep-dyn-mocker-kv", "conc": str(CONC)}}))
    settings = {
        "-W": workflow,
        "-e": event,
        "-P": "ubuntu-latest=-self-hosted",
        "--action-cache-path": folder / "act",
        "--artifact-server-path": folder / "artifacts",
        "--artifact-server-addr": "127.0.0.1",
        "--artifact-server-port": free_port(),
    }
    line = [act, "workflow_dispatch", "--json", "--no-cache-server"]
    line += [str(word) for pair in settings.items() for word in pair]
    for name, reference in pins(workflow).items():
        if name != "actions/checkout":  # act lays the sources out itself
            line += ["--local-repository", f"{name}@{reference}={STANDINS / name.partition('/')[2]}"]
    return [*line, *(word for name, value in env.items() for word in ("--env", f"{name}={value}"))]


def bench_env() -> str:
    folder = os.environ.get("SERVING_BENCH_ENV")
    assert folder, "no bench environment: run the tests with scripts/test, or set SERVING_BENCH_ENV"
    return folder


@pytest.fixture(scope="module")
def rehearsal(
    sources: Path,
    uv_cache: str,
    marked: Callable[[str], list[str]],
    tool: Callable[[str], str],
    tmp_path_factory: pytest.TempPathFactory,
) -> Rehearsal:
    folder = tmp_path_factory.mktemp("rehearse")
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    job_env = {
        "PATH": path,
        "STANDINS": str(STANDINS),
        "SERVING_BENCH_ENV": bench_env(),
        "SERVING_BENCH_HOME": str(folder / "envs"),
        "UV_CACHE_DIR": uv_cache,
    }
    (folder / "home").mkdir()
    own_env = {**os.environ, "HOME": str(folder / "home"), "XDG_CACHE_HOME": str(folder / "home/cache")}
    done = subprocess.run(
        command(tool("act"), sources, folder, job_env),
        cwd=sources,
        env=own_env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=280,
    )
    (folder / "act.log").write_text(done.stdout)
    events = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return Rehearsal(done.returncode, events, unpacked(folder / "artifacts", folder / "unpacked"), marked(str(folder)))


def unpacked(server: Path, target: Path) -> Path:
    """The uploaded artifacts, each unpacked into a folder of its name."""
    for archive in server.rglob("*.zip"):
        shutil.unpack_archive(archive, target / archive.stem)
    return target


def test_every_job_passes(rehearsal: Rehearsal) -> None:
    assert rehearsal.status == 0, rehearsal.log()[-8000:]
    assert rehearsal.output("status") == "passed"
    assert rehearsal.output("verdict") == "NO_BASELINE"


def test_the_matrix_has_a_row_for_the_config(rehearsal: Rehearsal, sources: Path) -> None:
    (row,) = json.loads(rehearsal.output("matrix"))["include"]
    clusters = yaml.safe_load((sources / "configs/clusters.yaml").read_text(encoding="utf-8"))["clusters"]
    assert rehearsal.output("count") == "1"
    assert set(row) >= {"id", "config", "cluster", "runs-on", "conc", "plan", "canary", "timeout-minutes"}
    assert row["config"] == "demo-2rep-dyn-mocker-kv"
    assert row["runs-on"] == clusters[row["cluster"]]["runs-on"]
    assert row["conc"] == str(CONC)
    assert (rehearsal.artifacts / "plans" / row["plan"]).is_file()


def the_run(rehearsal: Rehearsal) -> Path:
    (run,) = rehearsal.artifacts.glob("run-*/*")
    return run


def test_the_uploaded_run_directory_holds_a_passed_run_and_its_records(rehearsal: Rehearsal) -> None:
    run = the_run(rehearsal)
    status = json.loads((run / "status.json").read_text(encoding="utf-8"))
    assert (status["outcome"], status["stage"]) == ("passed", "done")
    assert {"plan.json", "events.jsonl", "server.0.log", "server.1.log", "router.log"} <= {
        p.name for p in run.iterdir()
    }
    lines = (run / f"points/c{CONC}/aiperf/profile_export.jsonl").read_text(encoding="utf-8").splitlines()
    phases = [json.loads(line)["metadata"]["benchmark_phase"] for line in lines]
    assert phases.count("profiling") > 200
    assert phases.count("warmup") > 0


def test_the_job_summary_has_the_table_of_ttft(rehearsal: Rehearsal) -> None:
    contents = {event["content"] for event in rehearsal.of("summary")}  # act says each for the step and for its action
    (summary,) = (content for content in contents if "TTFT" in content)
    for words in ("TTFT", "demo-2rep-dyn-mocker-kv", "first", "later", "p95"):
        assert words in summary
    assert re.search(rf"^\| c?{CONC} \|.*\d", summary, re.MULTILINE)


def test_the_report_is_uploaded_and_agrees_with_the_records(rehearsal: Rehearsal) -> None:
    report = json.loads((rehearsal.artifacts / "report/report.json").read_text(encoding="utf-8"))
    (point,) = report["runs"][0]["points"]
    lines = (the_run(rehearsal) / f"points/c{CONC}/aiperf/profile_export.jsonl").read_text().splitlines()
    profiling = [line for line in lines if json.loads(line)["metadata"]["benchmark_phase"] == "profiling"]
    assert point["requests"]["total"] == len(profiling)
    assert point["validity"]["verdict"] != "INVALID"
    assert (rehearsal.artifacts / "report/report.html").stat().st_size > 1000


def test_nothing_is_left_running(rehearsal: Rehearsal, marked: Callable[[str], list[str]]) -> None:
    deadline = time.monotonic() + 5
    leftovers = rehearsal.leftovers
    while leftovers and time.monotonic() < deadline:
        time.sleep(0.2)
        leftovers = marked(str(rehearsal.artifacts.parent))
    assert leftovers == []

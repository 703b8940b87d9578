"""One point: scrape, load, scrape, and what is written about it."""

from __future__ import annotations

import shlex
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from serving_bench.contracts import Outcome, Plan, PointResult
from serving_bench.engines.base import ModelSource
from serving_bench.errors import InputError, InterruptedRunError, ServingBenchError
from serving_bench.files import dump_json, read_json, write_atomic, write_model
from serving_bench.launch import client, results
from serving_bench.launch.deployment import Deployment
from serving_bench.launch.environ import masked_argv
from serving_bench.launch.load import client_argv
from serving_bench.launch.scrape import scrape


@dataclass(frozen=True)
class PointId:
    """A concurrency of a plan, and which of its repeats."""

    conc: int
    repeat: int
    repeats: int

    @property
    def name(self) -> str:
        return f"c{self.conc}" + (f"-r{self.repeat}" if self.repeats > 1 else "")


def point_ids(plan: Plan) -> list[PointId]:
    """All points of a plan in the order in which they run."""
    return [PointId(conc, repeat, plan.repeats) for repeat in range(plan.repeats) for conc in plan.conc]


@dataclass
class Points:
    """Runs points against a deployment and collects their rows."""

    plan: Plan
    out: Path
    model: ModelSource
    conversations: Path
    env: Mapping[str, str]
    """aiperf's environment."""
    rows: list[dict[str, Any]] = field(default_factory=list)

    def run(self, point: PointId, deployment: Deployment) -> None:
        """Run one point; raises what ended it early, after point.json was written."""
        topology = deployment.topology
        if topology is None:
            raise AssertionError("points run on a deployment that is up")
        folder = self.out / "points" / point.name
        argv = client_argv(
            self.plan,
            point.conc,
            url=topology.router.base_url,
            metrics_urls=[process.metrics_url for process in topology.replicas],
            model=self.model,
            conversations=self.conversations,
            artifacts=folder / "aiperf",
        )
        folder.mkdir(parents=True)
        self._scrape(deployment, folder / "metrics-before")
        deployment.console.say(f"  client: {shlex.join(masked_argv(argv))}")
        result = PointResult(
            conc=point.conc,
            repeat=point.repeat,
            outcome=Outcome.RUNNING,
            client_argv=tuple(masked_argv(argv)),
            started_ns=time.time_ns(),
            replicas=deployment.replicas(),
            router_endpoint=topology.router.base_url,
        )
        write_model(folder / "point.json", result)
        self._load(result, argv, folder, deployment)
        self._scrape(deployment, folder / "metrics-after")

    def _scrape(self, deployment: Deployment, folder: Path) -> None:
        if deployment.topology is not None:
            for name, reason in scrape(deployment.topology, folder).items():
                deployment.recorder.event("scrape-missing", process=name, when=folder.name, reason=reason)
                deployment.console.say(f"  {name} gave no metrics for {folder.name}: {reason}")

    def _load(self, result: PointResult, argv: tuple[str, ...], folder: Path, deployment: Deployment) -> None:
        begun = time.monotonic()
        update: dict[str, Any] = {"outcome": Outcome.FAILED, "code": "SB-BUG"}
        try:
            status = client.run_client(argv, self.env, folder, deployment.watch, self.plan.timeouts.point_s)
            update["client_exit"] = status
            problem = client.judge(status, folder / "aiperf", folder / "client.log")
            if problem is not None:
                raise problem
            update |= {"outcome": Outcome.PASSED, "code": None}
        except ServingBenchError as error:
            interrupted = isinstance(error, InterruptedRunError)
            outcome = Outcome.INTERRUPTED if interrupted else Outcome.FAILED
            update |= {"outcome": outcome, "code": error.code, "message": error.message}
            raise
        finally:
            took_s = time.monotonic() - begun
            ended_ns = time.time_ns()
            update |= {"ended_ns": ended_ns, "clock_step_s": (ended_ns - result.started_ns) / 1e9 - took_s}
            update["replica_exits"] = exits_by_index(deployment.watch.runtime.exits())
            # aiperf's copy of all prompts: the dataset has them, and they should not travel with results
            (folder / "aiperf" / "inputs.json").unlink(missing_ok=True)
            self._finish(result.model_copy(update=update), folder, took_s, deployment)

    def _finish(self, result: PointResult, folder: Path, took_s: float, deployment: Deployment) -> None:
        write_model(folder / "point.json", result)
        row = results.row(self.plan, result, *_summaries(folder / "aiperf"))
        self.rows.append(row)
        write_atomic(self.out / "agg_bmk.json", dump_json(self.rows))
        deployment.recorder.event("point", point=folder.name, outcome=result.outcome.value, code=result.code)
        deployment.recorder.timing(f"point {folder.name}", took_s)
        if result.outcome is Outcome.PASSED:
            deployment.console.say(
                f"  {folder.name}: {row['num_requests_total']} requests, {row['num_requests_failed']} errors,"
                f" {row['duration_s'] or 0.0:.1f} s of load, {took_s:.1f} s in all"
            )


def exits_by_index(exits: Mapping[str, int]) -> dict[str, int]:
    """``replica.1`` → ``1``; the router keeps its name."""
    return {name.removeprefix("replica."): status for name, status in exits.items()}


def _summaries(artifacts: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """aiperf's summary and phase manifest; empty where an aiperf that failed wrote none."""
    paths = (artifacts / client.SUMMARY, artifacts / "phase_manifest.json")
    summary, phases = (_object(path) for path in paths)
    return summary, phases


def _object(path: Path) -> dict[str, Any]:
    """A JSON object; empty where the file is not there or holds none: the row has nulls then."""
    try:
        found = read_json(path)
    except InputError:
        return {}
    return found if isinstance(found, dict) else {}

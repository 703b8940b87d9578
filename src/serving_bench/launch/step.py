"""The launch step: a plan in, a run directory out, nothing left behind."""

from __future__ import annotations

import os
import secrets
import shutil
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TextIO

from serving_bench.contracts import CacheState, Mode, Outcome, Plan, RunStatus, Runtime, Stage
from serving_bench.datasets.store import Materialized, materialize
from serving_bench.errors import InputError, ServingBenchError
from serving_bench.files import dump_json, read_bytes, read_model, sha256, write_atomic, write_model
from serving_bench.launch import environ, environment
from serving_bench.launch.cancel import Cancel
from serving_bench.launch.client import check_client
from serving_bench.launch.deployment import Deployment
from serving_bench.launch.heartbeat import Heartbeat
from serving_bench.launch.load import client_env
from serving_bench.launch.points import Points, point_ids
from serving_bench.launch.rundir import Console, Recorder, failure_lines, prepare
from serving_bench.launch.runtimes.process import ProcessRuntime
from serving_bench.launch.topology import Folders, check_plan, model_source
from serving_bench.launch.watch import Watch
from serving_bench.process import Family, identify

__all__ = ["LaunchOptions", "failure_lines", "run"]

_TMP = "/tmp"  # noqa: S108  the fallback; what is made in it has a random name and mode 0700
_TMPDIR_CHARS = 20


@dataclass(frozen=True)
class LaunchOptions:
    """What the command line says.

    ``root`` is the repository root for relative paths; ``bench_env`` a virtual
    environment with aiperf and Dynamo, whose bin/ goes first in PATH; ``conc``
    overrides the plan's concurrencies.
    """

    plan: Path
    out: Path
    root: Path
    bench_env: Path | None = None
    conc: tuple[int, ...] | None = None
    heartbeat_s: float = 30.0


def run(options: LaunchOptions, env: Mapping[str, str], out: TextIO) -> RunStatus:
    """Run a plan. Failures of what is measured and signals end up in the returned status and in status.json.

    Raises ``InputError`` where nothing was started because of the input: the
    plan file, the run directory, a runtime, engine or router that launch does
    not know. A bug is written down as SB-BUG, and raised after everything was stopped.
    """
    plan = _read_plan(options)
    folder = _resolved(options.out)
    with Cancel().installed() as cancel:
        prepare(folder)
        console = Console(out, env)
        recorder = Recorder(folder, console)
        launch = _Launch(options, plan, env, folder, console, recorder, cancel)
        try:
            launch.work()
        except ServingBenchError as error:
            recorder.fail(error)
        except BaseException as error:
            recorder.fail(error)
            raise
        finally:
            launch.stop()
    return recorder.status


def _read_plan(options: LaunchOptions) -> Plan:
    plan = read_model(options.plan, Plan)
    if plan.mode is not Mode.PERFORMANCE:
        raise InputError(
            f"{options.plan}: launch runs performance points, the plan asks for accuracy benchmarks ({plan.mode})",
            code="SB-PLAN-EVALS",
            hint="render without the labels that ask for them",
        )
    if options.conc is not None and options.conc != plan.conc:
        recorded = {**plan.overrides, "conc": ",".join(map(str, options.conc))}
        plan = plan.model_copy(update={"conc": options.conc, "overrides": recorded})
    if plan.cluster.runtime is not Runtime.PROCESS:
        raise InputError(
            f"{options.plan}: launch runs {Runtime.PROCESS} clusters, {plan.cluster.name} is {plan.cluster.runtime}",
            code="SB-PLAN-RUNTIME",
        )
    check_plan(plan, _resolved(options.root))
    if options.bench_env is not None and not (options.bench_env / "bin").is_dir():
        raise InputError(
            f"{options.bench_env}: no virtual environment: it has no bin folder",
            code="SB-BENCH-ENV",
            hint="./scripts/install-bench-env makes one and prints where",
        )
    return plan


@dataclass
class _Launch:
    """One run, from the first file to the last process."""

    options: LaunchOptions
    plan: Plan
    env: Mapping[str, str]
    out: Path
    console: Console
    recorder: Recorder
    cancel: Cancel
    family: Family = field(default_factory=Family)
    scratch: Path | None = None
    deployment: Deployment | None = None

    def work(self) -> None:
        """All points of the plan, each on a deployment in the declared cache state."""
        root = _resolved(self.options.root)
        self.scratch = _make_scratch(self.env)
        self.recorder.launcher(identify(os.getpid()), self.scratch)
        write_model(self.out / "plan.json", environ.masked_plan(self.plan))
        inherited = environ.inherited(self.env, self.options.bench_env and self.options.bench_env.absolute())
        check_client(inherited)
        facts = environment.describe(inherited, root)
        write_atomic(self.out / "environment.json", dump_json(facts))
        dataset = self._dataset(root)
        folders = _folders(root, self.out, self.scratch, self.env)
        model = model_source(self.plan, root)
        deployment = self.deployment = self._deployment(folders, inherited)
        points = Points(self.plan, self.out, model, dataset.conversations, client_env(inherited, folders, model))
        for number, point in enumerate(point_ids(self.plan)):
            if number and self.plan.cache is not CacheState.CARRY:
                self.recorder.stage(Stage.STOPPING, f"the next point starts {self.plan.cache}")
                deployment.down()
            if deployment.topology is None:
                with self.console.group(f"start {deployment.starts}"):
                    deployment.up()
                facts["open_sockets"] = environment.open_sockets(self.family, deployment.names(), deployment.ports())
                write_atomic(self.out / "environment.json", dump_json(facts))
            with self.console.group(f"point {point.name}"):
                self.recorder.stage(Stage.LOADING, point.name)
                points.run(point, deployment)
        self.recorder.stage(Stage.STOPPING)

    def _dataset(self, root: Path) -> Materialized:
        if self.scratch is None:
            raise AssertionError("the scratch folder is made first")
        spec = self.plan.scenario.dataset
        with self.cancel.raising():
            found = materialize(spec, root, self.scratch / "dataset")
        lines = [f"id: {spec.id}", f"sha256: {spec.sha256}", f"path: {spec.path or spec.file or spec.generator}"]
        if found.rooms is not None:
            rooms = read_bytes(found.rooms)
            write_atomic(self.out / "rooms.csv", rooms)
            lines.append(f"rooms_sha256: {sha256(rooms)}")
        write_atomic(self.out / "dataset.txt", "\n".join(lines) + "\n")
        return found

    def _deployment(self, folders: Folders, inherited: Mapping[str, str]) -> Deployment:
        return Deployment(
            plan=self.plan,
            folders=folders,
            namespace=f"sb{secrets.token_hex(6)}",
            visible=self.env.get("CUDA_VISIBLE_DEVICES"),
            watch=Watch(
                ProcessRuntime(self.family, inherited, folders.root, self.recorder.started),
                self.cancel,
                Heartbeat(self.console, self.options.heartbeat_s),
            ),
            recorder=self.recorder,
            console=self.console,
        )

    def stop(self) -> None:
        """Stop everything, remove what is not a result, write the last status. Works from any state."""
        begun = time.monotonic()
        try:
            if self.recorder.status.outcome is not Outcome.RUNNING:
                self.console.say(f"{Stage.STOPPING.value}: after {self.recorder.status.code}")
            if self.deployment is not None:
                self.deployment.down()
            if self.recorder.status.outcome is Outcome.RUNNING:
                self.cancel.check()  # a signal in the teardown of a run that had passed so far
        except ServingBenchError as error:
            self.recorder.fail(error)
        except BaseException as error:
            self.recorder.fail(error)
            raise
        finally:
            try:
                if self.scratch is not None:
                    remove_tree(self.scratch)
            finally:
                self.recorder.finish(stopping_s=time.monotonic() - begun)


def _make_scratch(env: Mapping[str, str]) -> Path:
    """A private folder with a short path.

    aiperf puts Unix sockets up to 85 characters below it, and the path of a
    socket may have 107 bytes: a longer TMPDIR than ``_TMPDIR_CHARS`` is not used.
    """
    wanted = env.get("TMPDIR") or _TMP
    folder = wanted if len(wanted) <= _TMPDIR_CHARS else _TMP
    try:
        return Path(tempfile.mkdtemp(prefix="serving-bench-", dir=folder)).absolute()
    except OSError as error:
        raise InputError(
            f"{folder}: cannot hold the run's temporary files: {error.strerror}",
            code="SB-TMPDIR",
            hint="set TMPDIR to a folder that this user may write",
        ) from error


def remove_tree(folder: Path) -> None:
    """Remove a folder that only this run used, also where a process took away the right to; gone is gone."""
    try:
        shutil.rmtree(folder)
    except FileNotFoundError:
        if folder.exists():  # something in it went by itself
            shutil.rmtree(folder, ignore_errors=True)
    except PermissionError:
        for parent, names, _ in os.walk(folder):
            for name in names:
                if not (path := Path(parent, name)).is_symlink():
                    path.chmod(0o700)
        shutil.rmtree(folder)


def _resolved(path: Path) -> Path:
    """Absolute, without symbolic links; a loop of them stays as it is, for whoever opens it to complain."""
    return Path(os.path.realpath(path))


def _folders(root: Path, out: Path, scratch: Path, env: Mapping[str, str]) -> Folders:
    return Folders(
        root=root,
        out=out,
        home=scratch / "home",
        tmp=scratch / "tmp",
        discovery=scratch / "discovery",
        hf_home=environ.hf_home(env),
        trace=out / "trace",
    )

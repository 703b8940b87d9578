"""Processes on this host: started, watched, stopped."""

from __future__ import annotations

import signal
from collections.abc import Callable, Mapping
from pathlib import Path

from serving_bench.errors import SystemUnderTestError
from serving_bench.launch import logs
from serving_bench.launch.topology import ROUTER, ManagedProcess
from serving_bench.process import Child, Family


class ProcessRuntime:
    """Runs the processes of a deployment as children of the launcher.

    ``inherited`` is the scrubbed environment that all of them get, ``on_start``
    is told of every process right after its start.
    """

    def __init__(
        self,
        family: Family,
        inherited: Mapping[str, str],
        cwd: Path,
        on_start: Callable[[Child, dict[str, str]], None],
    ) -> None:
        self.family = family
        self._inherited = inherited
        self._cwd = cwd
        self._on_start = on_start
        self._running: dict[str, Child] = {}
        self._conflicts: dict[str, logs.PortConflicts] = {}

    def start(self, process: ManagedProcess) -> None:
        """Start a process; ``SystemUnderTestError`` (SB-COMMAND) where its command cannot be started."""
        child = spawn(
            self.family, process.name, process.argv, env={**self._inherited, **process.env}, cwd=self._cwd,
            log=process.log,
        )  # fmt: skip
        self._running[process.name] = child
        self._conflicts[process.name] = logs.PortConflicts(child.log, child.log_offset)
        self._on_start(child, process.env)

    def start_client(self, argv: tuple[str, ...], env: Mapping[str, str], folder: Path) -> Child:
        """Start the load generator with a whole environment of its own; it is not one of those that are watched."""
        child = spawn(self.family, "client", argv, env=env, cwd=folder, log=folder / "client.log")
        self._on_start(child, {name: value for name, value in env.items() if self._inherited.get(name) != value})
        return child

    def exits(self) -> dict[str, int]:
        """Name → exit status of what has ended by itself."""
        ended = {name: child.exit_status() for name, child in self._running.items()}
        return {name: status for name, status in ended.items() if status is not None}

    def check(self, *, loading: bool) -> None:
        """Raise ``SystemUnderTestError`` if a process has ended, with the tail of its log."""
        for name, status in self.exits().items():
            child = self._running[name]
            evidence = logs.tail(child.log, start=child.log_offset)
            if not loading:
                self._check_port_conflict(child)
            raise SystemUnderTestError(
                f"{name} {describe_exit(status)}", code=_exit_code(name, loading=loading), evidence=evidence
            )

    def check_ports(self) -> None:
        """Raise ``SystemUnderTestError`` (SB-PORT-IN-USE) if a log reports an address in use.

        Some processes go on without what they could not bind, such as the
        mocker without its KV events: they would serve, and be measured wrongly.
        """
        for child in self._running.values():
            self._check_port_conflict(child)

    def _check_port_conflict(self, child: Child) -> None:
        line = self._conflicts[child.name].look(ended=child.exit_status() is not None)
        if line is not None:
            raise SystemUnderTestError(
                f"{child.name} found one of its ports taken",
                code="SB-PORT-IN-USE",
                evidence=(line,),
                retriable=True,
            )

    def child(self, name: str) -> Child:
        return self._running[name]

    def stop(self, *, router_s: float, replicas_s: float) -> None:
        """Stop the router, then the replicas, then whatever else is left of their trees.

        The router goes first, and gets its time: it completes the request trace as it ends.
        """
        router = [child for name, child in self._running.items() if name == ROUTER]
        replicas = [child for name, child in self._running.items() if name != ROUTER]
        self.family.stop(router, grace_s=router_s)
        self.family.stop(replicas, grace_s=replicas_s)
        left = self.family.stop_all(grace_s=1.0)
        self._running.clear()
        if left:
            names = ", ".join(f"{process.pid}" for process in left)
            raise SystemUnderTestError(f"processes outlived SIGKILL: {names}", code="SB-STOP")


def spawn(family: Family, name: str, argv: tuple[str, ...], *, env: Mapping[str, str], cwd: Path, log: Path) -> Child:
    """``Family.spawn`` with a known error (SB-COMMAND) for a command that cannot be started."""
    try:
        return family.spawn(name, argv, env=env, cwd=cwd, log=log)
    except (OSError, ValueError) as error:
        raise SystemUnderTestError(
            f"{name}: {argv[0]} cannot be started: {getattr(error, 'strerror', None) or error}",
            code="SB-COMMAND",
            hint="is the bench environment (--bench-env) the right one?",
        ) from error


def describe_exit(status: int) -> str:
    """``exited with status 3``, ``was killed by SIGKILL``."""
    if status >= 0:
        return f"exited with status {status}"
    try:
        return f"was killed by {signal.Signals(-status).name}"
    except ValueError:
        return f"was killed by signal {-status}"


def _exit_code(name: str, *, loading: bool) -> str:
    if name == ROUTER:
        return "SB-ROUTER-DIED" if loading else "SB-ROUTER-EXIT"
    return "SB-REPLICA-DIED" if loading else "SB-ENGINE-EXIT"

"""What is looked after while something long goes on."""

from __future__ import annotations

from dataclasses import dataclass

from serving_bench.launch.cancel import Cancel
from serving_bench.launch.heartbeat import Heartbeat
from serving_bench.launch.runtimes.process import ProcessRuntime


@dataclass(frozen=True)
class Watch:
    """The processes, which may end; the user, who may cancel; the reader, who wants to see life."""

    runtime: ProcessRuntime
    cancel: Cancel
    heartbeat: Heartbeat

"""What an engine has to answer so that launch can start replicas of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class ReplicaPorts:
    """Ports of one replica.

    ``kv_events`` and ``side_channel`` are first ports: an engine adds its rank
    to them, so replicas are as many ports apart as a replica has GPUs.
    """

    system: int
    kv_events: int
    side_channel: int

    def ports(self, stride: int) -> tuple[int, ...]:
        return (
            self.system,
            *range(self.kv_events, self.kv_events + stride),
            *range(self.side_channel, self.side_channel + stride),
        )


@dataclass(frozen=True)
class ModelSource:
    """What engines are told about the model: a folder or a Hugging Face id, and the name clients use."""

    location: str
    served_name: str
    revision: str | None = None
    """Set only for a Hugging Face id."""


class Engine(Protocol):
    """One engine; all methods are pure."""

    kind: str
    """Registry name, as ``Plan.engine.kind`` has it."""
    keeps_home: bool
    """Needs the user's own HOME, for compile caches that take minutes to fill."""

    def arguments(self, model: ModelSource, ports: ReplicaPorts) -> tuple[str, ...]:
        """Flags that the launcher adds to the config's command."""

    def environment(self, ports: ReplicaPorts) -> dict[str, str]:
        """Variables of this engine beyond those that every Dynamo process gets."""

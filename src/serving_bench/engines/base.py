"""What an engine answers to render (what may a config say?) and to launch (how is a replica started?)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

DYNAMO_FLAGS = ("--discovery-backend", "--endpoint", "--event-plane", "--namespace", "--request-plane", "--store-kv")
"""Flags of every Dynamo worker that say where it registers."""

VLLM_PARALLEL = (
    ("--tensor-parallel-size", "-tp"),
    ("--pipeline-parallel-size", "-pp"),
    ("--data-parallel-size", "-dp"),
)
SGLANG_PARALLEL = (
    ("--tensor-parallel-size", "--tp-size", "--tp"),
    ("--pipeline-parallel-size", "--pp-size", "--pp"),
    ("--data-parallel-size", "--dp-size", "--dp"),
)


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


class Engine:
    """What a config may say about an engine; one subclass per engine, each in its own module."""

    kind: ClassVar[str]
    """Registry name, as ``Plan.engine.kind`` has it."""
    framework: ClassVar[str]
    words: ClassVar[tuple[str, ...]]
    """First words of ``serve``; ``python3`` stands for any Python."""
    routers: ClassVar[tuple[str, ...]]
    """Profiles of the routers it can stand behind; ``none``: clients may reach it without one."""
    replicas: ClassVar[bool] = True
    """Several can stand side by side: ports and KV events can be set per replica."""
    needs_gpu: ClassVar[bool] = True
    owned_flags: ClassVar[tuple[str, ...]] = ()
    """Flags that the launcher sets itself."""
    kv_event_flags: ClassVar[tuple[str, ...]] = ()
    """Flags that place KV events: the launcher's as soon as there are several replicas."""
    parallel_flags: ClassVar[tuple[tuple[str, ...], ...]] = ()
    """Spellings of the flags whose product is the number of GPUs."""
    parallel_elsewhere: ClassVar[tuple[str, ...]] = ()
    """Flags that make that product unknowable from the command line."""
    names_model: ClassVar[bool] = False
    """The command takes the model as a word after the first ones."""

    def gpus(self, argv: Sequence[str]) -> int | None:
        """GPUs that the command line asks for: its parallel sizes multiplied; None where it does not tell."""
        if not self.parallel_flags or flag_values(argv, self.parallel_elsewhere):
            return None
        total = 1
        for spellings in self.parallel_flags:
            given = flag_values(argv, spellings)
            if given and not given[-1].isdecimal():
                return None
            total *= int(given[-1]) if given else 1
        return total


class LaunchableEngine(Engine, ABC):
    """An engine that launch can start; all methods are pure."""

    keeps_home: ClassVar[bool]
    """Needs the user's own HOME, for compile caches that take minutes to fill."""

    @abstractmethod
    def arguments(self, model: ModelSource) -> tuple[str, ...]:
        """Flags that the launcher adds to the config's command."""

    @abstractmethod
    def event_arguments(self, ports: ReplicaPorts) -> tuple[str, ...]:
        """Flags that place KV events; not added where the config has such flags of its own."""

    @abstractmethod
    def environment(self, ports: ReplicaPorts) -> dict[str, str]:
        """Variables of this engine beyond those that every Dynamo process gets."""


def flag_name(word: str) -> str:
    """The flag of a word such as ``--max_model_len=8``, spelt with hyphens; other words as they are."""
    name = word.partition("=")[0]
    return name.replace("_", "-") if name.startswith("--") else name


def flag_values(argv: Sequence[str], spellings: Sequence[str]) -> list[str]:
    """Values of a flag in the order given; a flag without a value counts as an empty one."""
    found = []
    for index, word in enumerate(argv):
        if flag_name(word) in spellings:
            after = argv[index + 1] if index + 1 < len(argv) else ""
            found.append(word.partition("=")[2] if "=" in word else after)
    return found

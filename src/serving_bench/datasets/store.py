"""From a dataset's lock entry to a checked file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from serving_bench.contracts import DatasetSpec
from serving_bench.datasets.generators import run_generator
from serving_bench.errors import InputError
from serving_bench.files import read_regular, sha256, write_atomic

if TYPE_CHECKING:
    from serving_bench.datasets.hub import Hub


@dataclass(frozen=True)
class Materialized:
    """A dataset on disk whose digests were checked."""

    conversations: Path
    rooms: Path | None = None
    """The rooms plan: CSV ``conversation_id,room,room_turn``."""


def materialize(spec: DatasetSpec, root: Path, folder: Path, hub: Hub | None = None) -> Materialized:
    """Make, load or find the dataset of ``spec`` and check it against the lock.

    ``root`` is the repository root that relative paths start from; generated
    files go to ``folder``, those from the Hugging Face Hub to its cache, where
    they are found again without a network. Raises ``InputError``:
    SB-DATASET-DIGEST where the content is not what was locked, SB-HUB-… where
    the Hub does not give it, and the codes of reading and writing files.
    """
    if spec.generator is not None:
        return _generate(spec, folder)
    if spec.path is not None:
        rooms = root / spec.rooms_file if spec.rooms_file else None
        found = Materialized(root / spec.path, rooms)
        _check(spec, read_regular(found.conversations, spec.bytes), read_regular(rooms) if rooms else None)
        return found
    return _load(spec, hub)


def _load(spec: DatasetSpec, hub: Hub | None) -> Materialized:
    # Late: a third of a second that only datasets from the Hub need.
    from serving_bench.datasets.hub import Hub  # noqa: PLC0415
    from serving_bench.datasets.hub_errors import Wanted  # noqa: PLC0415

    if spec.repo is None or spec.revision is None or spec.file is None:
        raise InputError(f"dataset {spec.id}: the lock entry names no source", code="SB-LOCK-SOURCE")
    hub = hub or Hub()
    wanted = Wanted(spec.id, spec.repo, spec.revision, spec.file, spec.sha256, spec.bytes)
    conversations = hub.fetch(wanted)
    if spec.rooms_file is None:
        return Materialized(conversations)
    rooms = Wanted(spec.id, spec.repo, spec.revision, spec.rooms_file, spec.rooms_sha256)
    return Materialized(conversations, hub.fetch(rooms))


def _generate(spec: DatasetSpec, folder: Path) -> Materialized:
    made = run_generator(spec.generator or "", spec.arguments)
    _check(spec, made.conversations, made.rooms)
    found = Materialized(folder / f"{spec.id}.jsonl", folder / f"{spec.id}.rooms.csv")
    write_atomic(found.conversations, made.conversations)
    write_atomic(folder / f"{spec.id}.rooms.csv", made.rooms)
    return found


def _check(spec: DatasetSpec, conversations: bytes, rooms: bytes | None) -> None:
    if spec.bytes is not None and len(conversations) != spec.bytes:
        raise _other(spec, "conversations", "bytes", f"{len(conversations):,}", f"{spec.bytes:,}")
    pairs = [("conversations", spec.sha256, conversations)]
    if rooms is not None and spec.rooms_sha256 is not None:
        pairs.append(("rooms plan", spec.rooms_sha256, rooms))
    for what, locked, data in pairs:
        found = sha256(data)
        if found != locked:
            raise _other(spec, what, "sha256", f"{found[:12]}…", f"{locked[:12]}…")


def _other(spec: DatasetSpec, what: str, which: str, found: str, locked: str) -> InputError:
    return InputError(
        f"dataset {spec.id}: the {what} have {which} {found}, the lock says {locked}",
        code="SB-DATASET-DIGEST",
        hint=f"if the change is meant: `serving-bench fetch --update {spec.id}`",
    )

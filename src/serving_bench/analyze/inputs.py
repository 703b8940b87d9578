"""Which directories were given, and what is in them.

A run directory has a ``plan.json`` or a ``status.json``; anything that aiperf
wrote is an artifact directory. A folder of either stands for all of them, as
when several uploads were downloaded side by side.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel

from serving_bench import files
from serving_bench.analyze.aiperf import MARKERS, Artifacts, load_artifacts
from serving_bench.analyze.promtext import PromTextError, Scrape, parse
from serving_bench.analyze.trace import NO_TRACE, Trace, read_trace, trace_files
from serving_bench.analyze.turns import RoomsPlan, parse_rooms
from serving_bench.contracts import Plan, PointResult, RunStatus
from serving_bench.errors import InputError

ROUTER = "router"
_POINT = re.compile(r"c([1-9][0-9]{0,6})(?:-r(0|[1-9][0-9]{0,5}))?")
_SHA256 = re.compile(r"\b[0-9a-f]{64}\b")

ModelT = TypeVar("ModelT", bound=BaseModel)


@dataclass(frozen=True)
class ScrapePair:
    """Own scrapes of one endpoint around a point."""

    before: Scrape
    after: Scrape


@dataclass(frozen=True)
class LoadedPoint:
    """One concurrency of a run as its files have it."""

    conc: int
    repeat: int
    artifacts: Artifacts
    folder: str = ""
    """Name of its directory under ``points``; empty for a bare artifact directory."""
    result: PointResult | None = None
    scrapes: Mapping[str, ScrapePair] = field(default_factory=dict)
    """``router`` or ``replica.<i>`` → scrapes; only endpoints that have both."""
    troubles: tuple[str, ...] = ()


@dataclass(frozen=True)
class LoadedRun:
    """A run directory, or a bare artifact directory (then without plan and status)."""

    source: str
    name: str
    bare: bool
    points: tuple[LoadedPoint, ...] = ()
    plan: Plan | None = None
    status: RunStatus | None = None
    versions: Mapping[str, str] = field(default_factory=dict)
    rooms: RoomsPlan | None = None
    rooms_sha256: str | None = None
    dataset_sha256: frozenset[str] = frozenset()
    """Digests that ``dataset.txt`` names."""
    trace: Trace = NO_TRACE
    troubles: tuple[str, ...] = ()


def is_run(path: Path) -> bool:
    return (path / "plan.json").is_file() or (path / "status.json").is_file()


def is_artifacts(path: Path) -> bool:
    return any((path / marker).is_file() for marker in MARKERS)


def expand(paths: Iterable[Path]) -> list[Path]:
    """The run and artifact directories that the paths stand for; each once, however often it is named.

    Raises ``InputError`` (SB-ANALYZE-INPUT) for a path that stands for none.
    """
    found: dict[str, Path] = {}
    for path in paths:
        inside = _inside(path)
        if not inside:
            raise InputError(
                f"{path}: {_description(path)}, expected a run directory (plan.json, status.json) "
                f"or an aiperf artifact directory ({', '.join(MARKERS)})",
                code="SB-ANALYZE-INPUT",
                hint="give the folder that launch wrote, or aiperf's --artifact-dir",
            )
        for one in inside:
            found.setdefault(os.path.realpath(one), one)
    return list(found.values())


def _inside(path: Path) -> list[Path]:
    try:
        return [path] if is_run(path) or is_artifacts(path) else _children(path)
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}", code="SB-ANALYZE-INPUT") from error


def _children(path: Path) -> list[Path]:
    if not path.is_dir():
        return []
    return sorted(child for child in path.iterdir() if child.is_dir() and (is_run(child) or is_artifacts(child)))


def _description(path: Path) -> str:
    if not path.exists():
        return "does not exist"
    if not path.is_dir():
        return "found a file"
    names = sorted(child.name for child in path.iterdir())
    if not names:
        return "found an empty directory"
    listed = ", ".join(names[:4]) + (", …" if len(names) > 4 else "")  # noqa: PLR2004  enough to recognise it
    return f"found a directory with {listed}"


def load(path: Path) -> LoadedRun:
    """Read one run or artifact directory; what is broken is named in ``troubles``."""
    return _load_run(path) if is_run(path) else _load_bare(path)


def _load_bare(path: Path) -> LoadedRun:
    artifacts = load_artifacts(path)
    point = LoadedPoint(artifacts.concurrency or 0, 0, artifacts)
    return LoadedRun(source=str(path), name=path.resolve().name, bare=True, points=(point,))


def _load_run(path: Path) -> LoadedRun:
    troubles: list[str] = []
    plan = _model(path / "plan.json", Plan, troubles)
    rooms_file = path / "rooms.csv"
    points = path / "points"
    troubles += _strangers(points)
    return LoadedRun(
        source=str(path),
        name=path.resolve().name,
        bare=False,
        points=tuple(_load_point(folder) for folder in _point_folders(points)),
        plan=plan,
        status=_model(path / "status.json", RunStatus, troubles),
        versions=_versions(path / "environment.json", troubles),
        rooms=_rooms(rooms_file, troubles),
        rooms_sha256=files.sha256(files.read_bytes(rooms_file)) if rooms_file.is_file() else None,
        dataset_sha256=_digests(path / "dataset.txt"),
        trace=read_trace(trace_files(path / "trace")),
        troubles=tuple(troubles),
    )


def _model(path: Path, kind: type[ModelT], troubles: list[str]) -> ModelT | None:
    try:
        return files.read_model(path, kind)
    except InputError as error:
        troubles.append(f"{error.message} [{error.code}]")
        return None


def _versions(path: Path, troubles: list[str]) -> dict[str, str]:
    if not path.is_file():
        return {}
    try:
        data: Any = files.read_json(path)
    except InputError as error:
        troubles.append(f"{error.message} [{error.code}]")
        return {}
    bench = data.get("bench") if isinstance(data, dict) else None
    packages = bench.get("packages") if isinstance(bench, dict) else None
    return {str(name): str(version) for name, version in packages.items()} if isinstance(packages, dict) else {}


def _rooms(path: Path, troubles: list[str]) -> RoomsPlan | None:
    if not path.is_file():
        return None
    try:
        return parse_rooms(path.read_text(encoding="utf-8"))
    except (ValueError, OSError) as error:
        troubles.append(f"rooms.csv: {error}")
        return None


def _digests(path: Path) -> frozenset[str]:
    if not path.is_file():
        return frozenset()
    return frozenset(_SHA256.findall(path.read_text(encoding="utf-8", errors="replace")))


def _strangers(folder: Path) -> list[str]:
    """What lies beside the points and is none: it is not reported on, and that is said."""
    children = sorted(folder.iterdir()) if folder.is_dir() else []
    names = [child.name for child in children if not _POINT.fullmatch(child.name)]
    listed = ", ".join(names[:4]) + (", …" if len(names) > 4 else "")  # noqa: PLR2004  enough to recognise it
    return [f"points holds what is no point and was left out: {listed}"] if names else []


def _point_folders(folder: Path) -> list[tuple[int, int, Path]]:
    """(conc, repeat, folder) of each point, in order."""
    children = folder.iterdir() if folder.is_dir() else []
    named = ((match, child) for child in children if (match := _POINT.fullmatch(child.name)))
    return sorted((int(match[1]), int(match[2] or 0), child) for match, child in named)


def _load_point(place: tuple[int, int, Path]) -> LoadedPoint:
    conc, repeat, folder = place
    troubles: list[str] = []
    return LoadedPoint(
        conc=conc,
        repeat=repeat,
        artifacts=load_artifacts(folder / "aiperf"),
        folder=folder.name,
        result=_model(folder / "point.json", PointResult, troubles),
        scrapes=_scrapes(folder, troubles),
        troubles=tuple(troubles),
    )


def _scrapes(folder: Path, troubles: list[str]) -> dict[str, ScrapePair]:
    before, after = (_scrape_folder(folder / f"metrics-{when}", troubles) for when in ("before", "after"))
    return {name: ScrapePair(before[name], after[name]) for name in sorted(before.keys() & after.keys())}


def _scrape_folder(folder: Path, troubles: list[str]) -> dict[str, Scrape]:
    scrapes: dict[str, Scrape] = {}
    for path in sorted(folder.glob("*.prom")):
        try:
            scrapes[path.stem] = parse(path.read_text(encoding="utf-8"))
        except (ValueError, OSError) as error:
            kinds = {PromTextError: "not Prometheus text", UnicodeDecodeError: "not UTF-8"}
            troubles.append(f"{folder.name}/{path.name}: {kinds.get(type(error), 'cannot be read')}: {error}")
    return scrapes

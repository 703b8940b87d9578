"""The fetch command: have the locked datasets on disk and checked, or lock what a repository holds now."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import yaml

from serving_bench.config import strictyaml
from serving_bench.config.catalog import check_datasets
from serving_bench.config.models import DatasetsYaml
from serving_bench.config.structure import validate
from serving_bench.contracts import DatasetSpec
from serving_bench.datasets.generators import run_generator
from serving_bench.datasets.hub import Hub, file_digest
from serving_bench.datasets.hub_errors import Wanted
from serving_bench.datasets.lockfile import Value, with_entry
from serving_bench.datasets.store import materialize
from serving_bench.errors import ConfigError, InputError, UsageError
from serving_bench.files import read_regular, sha256, write_atomic

LOCK = "datasets.lock.yaml"
_LINE_EVERY_S = 10.0


@dataclass(frozen=True)
class FetchOptions:
    config_dir: Path
    names: tuple[str, ...] = ()
    cache: Path | None = None
    update: str | None = None
    repo: str | None = None
    file: str | None = None


@dataclass
class Progress:
    """A line every so often while a file is loaded, on a terminal as on a runner."""

    out: IO[str]
    clock: Callable[[], float] = time.monotonic
    _last: float | None = field(default=None, init=False)

    def __call__(self, wanted: Wanted, done: int, total: int | None) -> None:
        now = self.clock()
        if self._last is None:
            self._last = now
        if now - self._last >= _LINE_EVERY_S:
            self._last = now
            share = f" of {total:,} ({done / total:.0%})" if total else ""
            print(f"{wanted.dataset}: {wanted.file}: {done:,}{share} bytes", file=self.out, flush=True)


def run(options: FetchOptions, out: IO[str]) -> None:
    """Fetch or update, with a line for each dataset; ``ConfigError``, ``InputError`` or ``UsageError``."""
    hub = Hub(cache=options.cache, progress=Progress(out))
    lock = options.config_dir / LOCK
    if options.update is not None:
        _update(options, lock, options.update, hub, out)
        return
    root = options.config_dir.resolve().parent
    for spec in _chosen(locked(lock), options.names):
        print(f"{spec.id}: {_fetch(spec, root, hub)}", file=out, flush=True)


def locked(path: Path) -> dict[str, DatasetSpec]:
    """The lock's entries; ``ConfigError`` with everything that is wrong with the file."""
    document = strictyaml.parse(str(path), read_regular(path, strictyaml.MAX_BYTES))
    model = validate(document, DatasetsYaml)
    if model is not None:
        document.problems += check_datasets(document, model)
    if model is None or document.problems:
        raise ConfigError(document.problems)
    return {name: _spec(name, dict(entry)) for name, entry in model.datasets.items()}


def _spec(name: str, values: Mapping[str, Any]) -> DatasetSpec:
    return DatasetSpec(id=name, **{key: value for key, value in values.items() if key != "description"})


def _chosen(entries: Mapping[str, DatasetSpec], names: Sequence[str]) -> list[DatasetSpec]:
    unknown = [name for name in names if name not in entries]
    if unknown:
        known = ", ".join(entries) or "none"
        raise InputError(
            f"no lock entry for {', '.join(map(strictyaml.shorten, unknown))}, there are: {known}",
            code="SB-DATASET-UNKNOWN",
            hint="`serving-bench fetch --update NAME --repo ORGANISATION/NAME --file FILE` adds one",
        )
    return [entries[name] for name in names] if names else list(entries.values())


def _fetch(spec: DatasetSpec, root: Path, hub: Hub) -> str:
    with tempfile.TemporaryDirectory(prefix="serving-bench-") as scratch:
        found = materialize(spec, root, Path(scratch), hub)
        size = found.conversations.stat().st_size
    if spec.generator is not None:
        return f"made by the generator {spec.generator} when it is used; {size:,} bytes, as locked"
    return f"{found.conversations}: {size:,} bytes, as locked"


def _update(options: FetchOptions, lock: Path, name: str, hub: Hub, out: IO[str]) -> None:
    text = _text(lock) if lock.exists() else "datasets: {}\n"
    values = _found(options, name, _entry(text, name), lock, hub)
    changed = with_entry(text, name, values)
    write_atomic(lock, changed)
    for key, value in values.items():
        print(f"{name}: {key}: {value}", file=out)
    print(f"{name}: {'locked in' if changed != text else 'is as locked in'} {lock}", file=out, flush=True)


def _text(lock: Path) -> str:
    try:
        return read_regular(lock).decode()
    except UnicodeDecodeError as error:
        raise InputError(f"{lock}: not UTF-8", code="SB-LOCK-EDIT", hint="correct it by hand") from error


def _entry(text: str, name: str) -> dict[str, Any]:
    """The entry as it stands; it may lack what the update is about to find out."""
    try:
        return dict(yaml.safe_load(text)["datasets"].get(name) or {})
    except (yaml.YAMLError, TypeError, ValueError, KeyError, AttributeError) as error:
        raise InputError("the dataset lock is not one", code="SB-LOCK-EDIT", hint="correct it by hand") from error


def _found(options: FetchOptions, name: str, entry: Mapping[str, Any], lock: Path, hub: Hub) -> dict[str, Value]:
    """What the entry should hold now."""
    if "generator" in entry:
        made = run_generator(str(entry["generator"]), entry.get("arguments") or {})
        digests: dict[str, Value] = {"sha256": sha256(made.conversations), "bytes": len(made.conversations)}
        return {**digests, "rooms-sha256": sha256(made.rooms)}
    if "path" in entry:
        root = lock.resolve().parent.parent
        rooms = [root / entry["rooms-file"]] if entry.get("rooms-file") else []
        return _digests([root / entry["path"], *rooms])
    repo, file = options.repo or entry.get("repo"), options.file or entry.get("file")
    if not repo or not file:
        raise UsageError(f"the lock has no entry {name} with repo and file: give --repo and --file", code="SB-USAGE")
    revision = hub.current_revision(name, str(repo))
    files = [str(file), *([str(entry["rooms-file"])] if entry.get("rooms-file") else [])]
    paths = [hub.fetch(Wanted(name, str(repo), revision, one)) for one in files]
    return {"repo": str(repo), "revision": revision, "file": str(file), **_digests(paths)}


def _digests(paths: Sequence[Path]) -> dict[str, Value]:
    """Of the conversations and, where there is one, of the rooms plan."""
    for path in paths:
        if not path.is_file():
            raise InputError(f"{path}: no such file", code="SB-FILE-MISSING", hint="check the path")
    found: dict[str, Value] = {"sha256": file_digest(paths[0]), "bytes": paths[0].stat().st_size}
    return {**found, "rooms-sha256": file_digest(paths[1])} if len(paths) > 1 else found

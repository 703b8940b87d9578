"""Reading the files of a ``configs/`` folder, each once, and laying one config over another."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from serving_bench.config import strictyaml
from serving_bench.config.layers import layer
from serving_bench.config.overrides import Overrides
from serving_bench.config.strictyaml import Document, shorten
from serving_bench.errors import InputError, Problem
from serving_bench.files import read_regular

SERVING = "serving"


@dataclass
class Reader:
    """Documents of one folder; ``config_dir`` is absolute, its parent the repository root."""

    config_dir: Path
    _read: dict[Path, Document] = field(default_factory=dict)

    @property
    def root(self) -> Path:
        return self.config_dir.parent

    def shown(self, path: Path) -> str:
        """The path as problems show it: relative to the repository root where it is below it."""
        return path.relative_to(self.root).as_posix() if path.is_relative_to(self.root) else str(path)

    def document(self, path: Path) -> Document:
        """A file as it is; one that cannot be read has its problem in it."""
        if path not in self._read:
            self._read[path] = self._parse(path)
        return self._read[path]

    def _parse(self, path: Path) -> Document:
        try:
            data = read_regular(path, strictyaml.MAX_BYTES)
        except InputError as error:
            reason = error.message.partition(": ")[2]
            return Document(self.shown(path), problems=[Problem(self.shown(path), 1, 1, "", reason, error.code)])
        return strictyaml.parse(self.shown(path), data)

    def config(self, path: Path, overrides: Overrides) -> Document:
        """A config over the one that it extends, under what the command line sets; a document of its own."""
        own = self.document(path)
        document = Document(own.path, own.value, own.places, own.key_places, list(own.problems))
        if isinstance(own.value, dict) and not own.problems and "extends" in own.value:
            document = self._extended(own, path, own.value["extends"])
        upper = overrides.document()
        if upper is None or document.problems or not isinstance(document.value, dict):
            return document
        return layer(document, upper, path=document.path)

    def _extended(self, own: Document, path: Path, name: Any) -> Document:
        """``own`` over the config it names; with a problem that shows both files where that is not possible."""
        merged = Document(own.path, own.value, own.places, own.key_places)
        base_path = self.config_dir / SERVING / f"{name}.yaml"
        if name is None:
            return merged
        if not isinstance(name, str):
            message = f"expected a string, found {shorten(name)}"
            merged.problems.append(own.problem(("extends",), message, "SB-TYPE"))
            return merged
        if base_path == path:
            merged.problems.append(own.problem(("extends",), "a config cannot extend itself", "SB-EXTENDS"))
            return merged
        base = self.document(base_path) if strictyaml.is_name(name) else None
        problem = _extends_problem(own, base, name)
        if base is None or problem is not None:
            merged.problems += [problem] if problem else []
            return merged
        return layer(base, own)


def _extends_problem(own: Document, base: Document | None, name: str) -> Problem | None:
    if base is None or any(problem.code == "SB-FILE-MISSING" for problem in base.problems):
        return own.problem(("extends",), f"there is no config {shorten(name)} to extend", "SB-EXTENDS-UNKNOWN")
    if base.problems or not isinstance(base.value, dict):
        first = base.problems[0].text() if base.problems else f"{base.path} is no mapping"
        return own.problem(("extends",), f"the config that it extends has errors: {first}", "SB-EXTENDS")
    if "extends" in base.value:
        path, line, column = base.place(("extends",))
        message = f"{base.path} extends another config itself ({path}:{line}:{column}): one level is allowed"
        return own.problem(("extends",), message, "SB-EXTENDS-LEVELS")
    return None

"""What the command line sets instead of the files: validated like them, recorded in the plan."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from serving_bench.config.strictyaml import Document, Key

_RANGE = re.compile(r"([0-9]{1,9}):([0-9]{1,9})(?::(x?[0-9]{1,9}))?\Z")


@dataclass(frozen=True)
class Overrides:
    """Values in place of the configs' own; None leaves a config as it is."""

    conc: str | None = None
    """``4,8`` or ``FROM:TO[:STEP]``, with STEP as in the file: ``8`` or ``x2``."""
    repeats: int | None = None
    duration_s: float | None = None
    cluster: tuple[str, ...] | None = None
    image: str | None = None

    def recorded(self) -> dict[str, str]:
        """Flag → value, for the plan and the report."""
        values = {
            "conc": self.conc,
            "repeats": self.repeats,
            "duration": self.duration_s and f"{self.duration_s:g}",
            "cluster": ",".join(self.cluster) if self.cluster else None,
            "image": self.image,
        }
        return {name: str(value) for name, value in values.items() if value is not None}

    def document(self) -> Document | None:
        """A layer to put over a config; its places name the flags."""
        values: dict[str, Any] = {
            "conc": None if self.conc is None else _conc(self.conc),
            "repeats": self.repeats,
            "duration-s": self.duration_s,
            "cluster": None if self.cluster is None else list(self.cluster),
            "image": self.image,
        }
        document = Document("command line", value={key: value for key, value in values.items() if value is not None})
        for name in document.value:
            _place(document, (name,), document.value[name], "--" + name.removesuffix("-s"))
        return document if document.value else None


def _place(document: Document, key: Key, value: Any, flag: str) -> None:
    document.places[key] = document.key_places[key] = (flag, 0, 0)
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for part, inner in inside:
        _place(document, (*key, part), inner, flag)


def _conc(text: str) -> Any:
    """As YAML would have it; what is no number stays text, for the model to refuse."""
    if match := _RANGE.match(text):
        start, end, step = match.groups()
        found: dict[str, Any] = {"from": int(start), "to": int(end)}
        return found | ({"step": _number(step)} if step else {})
    return [_number(part.strip()) for part in text.split(",")]


def _number(text: str) -> int | str:
    return int(text) if re.fullmatch(r"[0-9]{1,9}", text) else text

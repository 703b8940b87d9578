"""A strict parser of the Prometheus text format, and differences of counters."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

_NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
_SAMPLE = re.compile(rf"({_NAME})(?:\{{(.*)\}})?[ \t]+(\S+)(?:[ \t]+-?\d+)?\s*")
_LABEL = re.compile(r'\s*([a-zA-Z_][a-zA-Z0-9_]*)\s*=\s*"((?:[^"\\\n]|\\.)*)"\s*(?:,|$)')
_TYPE = re.compile(rf"#\s*TYPE\s+({_NAME})\s+(\w+)\s*")
_ESCAPES = {r"\\": "\\", r"\"": '"', r"\n": "\n"}

Labels = tuple[tuple[str, str], ...]


class PromTextError(ValueError):
    """A line that is not Prometheus text; the message says which."""


@dataclass(frozen=True)
class Scrape:
    """Samples of one scrape of one endpoint."""

    samples: Mapping[str, Mapping[Labels, float]] = field(default_factory=dict)
    types: Mapping[str, str] = field(default_factory=dict)

    def total(self, name: str, **labels: str) -> float | None:
        """Sum of a name's series that carry the labels; null where there is none."""
        return finite_sum(
            value for key, value in self.samples.get(name, {}).items() if labels.items() <= dict(key).items()
        )

    def labels(self, label: str) -> set[str]:
        """All values that a label takes."""
        return {value for series in self.samples.values() for key in series for name, value in key if name == label}

    def counts_up(self, name: str) -> bool:
        """Whether a sample of this name may never go down: a counter, or a histogram's count or bucket."""
        if self.types.get(name) == "counter" or self.types.get(name.removesuffix("_total")) == "counter":
            return True
        base = next((name.removesuffix(end) for end in ("_count", "_bucket") if name.endswith(end)), None)
        return base is not None and self.types.get(base) in {"histogram", "summary"}


def finite_sum(values: Iterable[float]) -> float | None:
    """Sum; null where there is nothing to add, or something that is no finite number."""
    found = list(values)
    if not found or not all(map(math.isfinite, found)):
        return None
    total = sum(found)
    return total if math.isfinite(total) else None


def _labels(text: str, line: int) -> Labels:
    found: list[tuple[str, str]] = []
    at = 0
    while at < len(text):
        match = _LABEL.match(text, at)
        if match is None:
            raise PromTextError(f"line {line}: bad labels: {text[at : at + 60]!r}")
        value = re.sub(r"\\.", lambda escape: _ESCAPES.get(escape[0], escape[0]), match[2])
        found.append((match[1], value))
        at = match.end()
    return tuple(sorted(found))


def parse(text: str) -> Scrape:
    """Parse one scrape. Raises ``PromTextError`` for a line that is no sample and no comment."""
    samples: dict[str, dict[Labels, float]] = {}
    types: dict[str, str] = {}
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        if line.startswith("#"):
            if kind := _TYPE.fullmatch(line):
                types[kind[1]] = kind[2]
            continue
        match = _SAMPLE.fullmatch(line)
        if match is None:
            raise PromTextError(f"line {number}: not a sample: {line[:60]!r}")
        try:
            value = float(match[3])
        except ValueError as error:
            raise PromTextError(f"line {number}: not a number: {match[3][:30]!r}") from error
        samples.setdefault(match[1], {})[_labels(match[2] or "", number)] = value
    return Scrape(samples, types)


def delta(before: Scrape, after: Scrape, name: str, **labels: str) -> float | None:
    """Growth of a counter between two scrapes; null where the later one lacks it.

    A counter that was not there before counts from zero: series appear with
    the first request that touches them.
    """
    later = after.total(name, **labels)
    return None if later is None else later - (before.total(name, **labels) or 0.0)


def backwards(before: Scrape, after: Scrape) -> list[str]:
    """Names of counters of which a series went down: their process started anew."""
    return sorted(
        {
            name
            for name, series in before.samples.items()
            if before.counts_up(name)
            for key, value in series.items()
            if not math.isnan(value) and not after.samples.get(name, {}).get(key, value) >= value
        }
    )

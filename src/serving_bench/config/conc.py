"""Concurrencies of a config: a list as it is, or a range expanded."""

from __future__ import annotations

from serving_bench.config.models import RangeYaml

MAX_POINTS = 1000


def concurrencies(conc: list[int] | RangeYaml) -> tuple[int, ...]:
    """The concurrencies in ascending order for a range, in the file's order for a list.

    A range stops at ``MAX_POINTS + 1`` values, so that the caller can tell it is too long.
    """
    if isinstance(conc, list):
        return tuple(conc)
    found: list[int] = []
    value = conc.from_
    while value <= conc.to and len(found) <= MAX_POINTS:
        found.append(value)
        value = value * int(conc.step[1:]) if isinstance(conc.step, str) else value + conc.step
    return tuple(found)

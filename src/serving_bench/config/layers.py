"""One document over another: ``extends`` and overrides, each value with the place it came from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from serving_bench.config.strictyaml import Document, Key

WHOLE: frozenset[Key] = frozenset({("model",), ("conc",)})
"""Mappings that are replaced as a whole: a half of one and a half of another would be nobody's."""


def layer(base: Document, over: Document, path: str | None = None) -> Document:
    """``over`` on top of ``base``: mappings are merged key by key, everything else is replaced.

    The result has the path of ``over``, unless another is given, and no problems of its own.
    """
    merged = Document(path or over.path, places=dict(base.places), key_places=dict(base.key_places))
    if not isinstance(base.value, dict) or not isinstance(over.value, dict):
        merged.value, merged.places, merged.key_places = over.value, over.places, over.key_places
        return merged
    merged.value = _merge(merged, base.value, over, ())
    merged.places[()] = (merged.path, 1, 1)
    return merged


def _merge(merged: Document, base: Mapping[str, Any], over: Document, key: Key) -> dict[str, Any]:
    result = dict(base)
    upper = over.value
    for part in key:
        upper = upper[part]
    for name, value in upper.items():
        inner = (*key, name)
        below = base.get(name)
        if isinstance(value, dict) and isinstance(below, dict) and inner not in WHOLE:
            result[name] = _merge(merged, below, over, inner)
            merged.places[inner] = over.places[inner]
            merged.key_places[inner] = over.key_places[inner]
        else:
            result[name] = value
            _replace_places(merged, over, inner)
    return result


def _replace_places(merged: Document, over: Document, key: Key) -> None:
    """All places at and below the key become those of ``over``."""
    for ours, theirs in ((merged.places, over.places), (merged.key_places, over.key_places)):
        for old in [place for place in ours if place[: len(key)] == key]:
            del ours[old]
        ours.update({place: where for place, where in theirs.items() if place[: len(key)] == key})

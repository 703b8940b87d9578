"""One document over another: ``extends`` and overrides, each value with the place it came from."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import Any

from serving_bench.config.strictyaml import Document, Key, Place

WHOLE: frozenset[Key] = frozenset({("model",), ("conc",)})
"""Mappings that are replaced as a whole: a half of one and a half of another would be nobody's."""


def layer(base: Document, over: Document, path: str | None = None) -> Document:
    """``over`` on top of ``base``: mappings are merged key by key, everything else is replaced.

    The result has the path of ``over``, unless another is given, and no problems of its own.
    """
    merged = Document(path or over.path)
    if not isinstance(base.value, dict) or not isinstance(over.value, dict):
        merged.value, merged.places, merged.key_places = over.value, over.places, over.key_places
        return merged
    replaced: set[Key] = set()
    merged.value = _merge(base.value, over.value, (), replaced)
    merged.places = _places(base.places, over.places, replaced)
    merged.key_places = _places(base.key_places, over.key_places, replaced)
    merged.places[()] = (merged.path, 1, 1)
    return merged


def _merge(base: Mapping[str, Any], over: Mapping[str, Any], key: Key, replaced: set[Key]) -> dict[str, Any]:
    """The merged mapping at ``key``; what is replaced in it is added to ``replaced``."""
    result = dict(base)
    for name, value in over.items():
        inner = (*key, name)
        below = base.get(name)
        if isinstance(value, dict) and isinstance(below, dict) and inner not in WHOLE:
            result[name] = _merge(below, value, inner, replaced)
        else:
            result[name] = value
            replaced.add(inner)
    return result


def _places(base: Mapping[Key, Place], over: Mapping[Key, Place], replaced: AbstractSet[Key]) -> dict[Key, Place]:
    """Places of the upper layer, and those of the lower one that are not at or below something replaced."""
    kept = {
        key: place for key, place in base.items() if not any(key[:end] in replaced for end in range(1, len(key) + 1))
    }
    return kept | dict(over)

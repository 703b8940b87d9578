"""HTML and SVG elements as text, escaped by construction."""

from __future__ import annotations

import html
from collections.abc import Iterable

from serving_bench.analyze.plain import plain

_VOID = frozenset({"meta", "br"})


class Markup(str):
    """Text that is markup already; any other text is escaped when it becomes a child."""

    __slots__ = ()


Child = str | None
Attribute = str | float | None


def escaped(child: str) -> str:
    return child if isinstance(child, Markup) else html.escape(plain(child), quote=True)


def _attribute(name: str, value: str | float) -> str:
    # class_ stands for class, data_label for data-label; viewBox keeps its case.
    key = name.rstrip("_").replace("_", "-")
    shown = f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)
    return f' {key}="{html.escape(plain(shown), quote=True)}"'


def tag(name: str, /, *children: Child, **attributes: Attribute) -> Markup:
    """An element; null children and attributes are left out."""
    inside = "".join(_attribute(key, value) for key, value in attributes.items() if value is not None)
    if name in _VOID:
        return Markup(f"<{name}{inside}>")
    return Markup(f"<{name}{inside}>{''.join(escaped(child) for child in children if child is not None)}</{name}>")


def join(children: Iterable[Child]) -> Markup:
    """Several elements in a row."""
    return Markup("".join(escaped(child) for child in children if child is not None))


def lines(texts: Iterable[str]) -> Markup:
    """Texts as lines of a ``pre``, each made harmless."""
    return Markup("\n".join(escaped(text) for text in texts))

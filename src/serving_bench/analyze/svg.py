"""Axes, scales and marks for small charts; colours come from the page's style sheet by class."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from serving_bench.analyze.markup import Markup, join, tag

WIDTH = 400.0
"""Units of every chart: at 360 pixels of screen its 12-unit text is still readable."""


@dataclass(frozen=True)
class Frame:
    """The plotting area inside a chart."""

    left: float
    top: float
    right: float
    bottom: float

    @property
    def width(self) -> float:
        return self.right - self.left


def ticks(top: float, wanted: int = 4) -> list[float]:
    """Round numbers from 0 to at least ``top``."""
    if top <= 0 or not math.isfinite(top):
        return [0.0, 1.0]
    raw = top / wanted
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(step * power for step in (1.0, 2.0, 2.5, 5.0, 10.0) if step * power >= raw * (1 - 1e-9))
    return [step * number for number in range(math.ceil(top / step - 1e-9) + 1)]


def figure(title: str, description: str, height: float, *marks: Markup) -> Markup:
    """The drawing with its accessible name and description."""
    head = (tag("title", title), tag("desc", description))
    return tag("svg", *head, *marks, viewBox=f"0 0 {WIDTH:g} {height:g}", role="img", aria_label=title, class_="chart")


def label(x: float, y: float, text: str, anchor: str = "start", class_: str = "tick") -> Markup:
    return tag("text", text, x=x, y=y, text_anchor=anchor, class_=class_)


def line(x1: float, y1: float, x2: float, y2: float, class_: str) -> Markup:
    return tag("line", x1=x1, y1=y1, x2=x2, y2=y2, class_=class_)


def points(places: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in places)


def vertical(frame: Frame, top: float, value: float) -> float:
    """Height of a value on an axis from 0 to ``top``."""
    return frame.bottom - (frame.bottom - frame.top) * value / top


def y_axis(frame: Frame, values: Sequence[float], unit: str) -> Markup:
    """Grid lines with numbers, and the unit above them."""
    rows: list[Markup] = []
    for value in values:
        y = vertical(frame, values[-1], value)
        rows += [line(frame.left, y, frame.right, y, "grid"), label(frame.left - 6, y + 4, f"{value:g}", "end")]
    return join([label(frame.left - 6, frame.top - 12, unit, "end", "axis"), *rows])


def x_places(frame: Frame, count: int) -> list[float]:
    """Evenly spaced places for ``count`` categories."""
    gap = frame.width / count
    return [frame.left + gap * (number + 0.5) for number in range(count)]


@dataclass(frozen=True)
class Segment:
    """A part of a stacked bar."""

    value: float
    class_: str
    tip: str
    text: str = ""


@dataclass(frozen=True)
class Bar:
    """A horizontal bar with its name at the left and a text at its end; no segments: the text stands alone."""

    name: str
    segments: tuple[Segment, ...]
    end: str
    heading: str = ""
    """Shown above the bar, where a new group begins."""


_ROW = 22.0
_HEADING = 20.0
_READABLE = 34.0


def bars(title: str, description: str, rows: Sequence[Bar], top: float, unit: str) -> Markup:
    """Horizontal stacked bars on an axis from 0 to ``top``."""
    height = 30.0 + sum(_ROW + (_HEADING if row.heading else 0) for row in rows)
    frame = Frame(left=86.0, top=6.0, right=WIDTH - 52.0, bottom=height - 26.0)
    marks: list[Markup] = []
    for value in (0.0, top / 2, top):
        x = frame.left + frame.width * value / top
        marks += [line(x, frame.top, x, frame.bottom, "grid"), label(x, height - 10, f"{value:g}", "middle")]
    marks.append(label(frame.right + 14, height - 10, unit, "start", "axis"))
    y = frame.top
    for row in rows:
        if row.heading:
            marks.append(label(4, y + 15, row.heading, "start", "heading"))
            y += _HEADING
        marks.append(_bar(frame, row, y, top))
        y += _ROW
    return figure(title, description, height, *marks)


def _bar(frame: Frame, row: Bar, y: float, top: float) -> Markup:
    marks = [label(frame.left - 8, y + 15, row.name, "end", "tick")]
    x = frame.left
    for segment in row.segments:
        # A negative part has no width; the table beside the chart has its number.
        width = max(0.0, frame.width * segment.value / top)
        marks.append(
            tag("rect", tag("title", segment.tip), x=x, y=y + 3, width=width, height=_ROW - 6, class_=segment.class_)
        )
        if segment.text and width >= _READABLE:
            marks.append(label(x + width / 2, y + 15, segment.text, "middle", "inside"))
        x += width
    marks.append(label(x + 6, y + 15, row.end, "start", "value" if row.segments else "none"))
    return join(marks)

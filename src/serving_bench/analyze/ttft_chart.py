"""TTFT over concurrency by turn class, with interval bands and the objective."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from serving_bench.analyze import format as fmt
from serving_bench.analyze import svg
from serving_bench.analyze.charts import TURNS, Chart
from serving_bench.analyze.markup import Markup, join, tag
from serving_bench.report_contract import Distribution, Point, Run, Verdict

_HEIGHT = 250.0
_FRAME = svg.Frame(left=48.0, top=30.0, right=svg.WIDTH - 10.0, bottom=_HEIGHT - 44.0)
_SPREAD = 14.0
"""Horizontal distance of the classes at one concurrency, so that their marks do not cover one another."""


@dataclass(frozen=True)
class _Mark:
    """A percentile at one place, with its interval where there is one."""

    x: float
    value: float
    interval: tuple[float, float] | None
    tip: str


def ttft_charts(run: Run) -> list[Chart]:
    """p95 and p50 over concurrency, on axes of their own."""
    shown = [point for point in run.points if point.validity.verdict is not Verdict.INVALID]
    return [chart for name in ("p95", "p50") if (chart := _chart(shown, name)) is not None]


def _value(one: Distribution, name: str) -> float | None:
    value: float | None = getattr(one, name)
    return value


def _interval(one: Distribution, name: str) -> tuple[float, float] | None:
    found: tuple[float, float] | None = getattr(one, f"{name}_ci")
    return found


def _objective(points: Sequence[Point], name: str) -> float | None:
    return next((check.limit for point in points for check in point.slo if check.name == f"ttft-{name}-ms"), None)


def _chart(points: Sequence[Point], name: str) -> Chart | None:
    every = [(point, turns, getattr(point.ttft_ms, turns)) for point in points for turns in TURNS]
    known = [one for _, _, one in every if _value(one, name) is not None]
    if not known:
        return None
    return Chart(
        title=f"TTFT {name} over concurrency",
        caption="Bands and bars are 95 % intervals by resampling rooms. A missing mark has too few requests.",
        drawing=_drawing(points, name, known),
        legend=tuple((f"line-{turns}", f"{turns} turns") for turns in TURNS),
        header=("point", "turns", "n", f"{name}, ms", "95 % interval"),
        rows=tuple(
            (
                fmt.point_name(point),
                turns,
                fmt.count(one.n),
                fmt.percentile(one, name),
                fmt.interval(_interval(one, name)) or fmt.NONE,
            )
            for point, turns, one in every
        ),
    )


def _top(known: Sequence[Distribution], name: str, limit: float | None) -> float:
    """The axis holds all marks and intervals; the objective too, unless that would flatten them."""
    highest = max(max(_value(one, name) or 0.0, *(_interval(one, name) or (0.0,))) for one in known)
    return max(highest, limit) if limit is not None and limit <= 3 * highest else highest


def _drawing(points: Sequence[Point], name: str, known: Sequence[Distribution]) -> Markup:
    limit = _objective(points, name)
    axis = svg.ticks(_top(known, name, limit))
    places = svg.x_places(_FRAME, len(points))
    names = [fmt.point_name(point).removeprefix("c") for point in points]
    marks = [
        svg.y_axis(_FRAME, axis, "ms"),
        *(svg.label(x, _FRAME.bottom + 18, text, "middle") for x, text in zip(places, names, strict=True)),
        svg.label((_FRAME.left + _FRAME.right) / 2, _HEIGHT - 8, "concurrency", "middle", "axis"),
        _limit_line(limit, axis[-1]),
        *(_series(points, places, turns, name, axis[-1]) for turns in TURNS),
    ]
    title = f"TTFT {name} in milliseconds over concurrency, by turn class"
    return svg.figure(title, "Lines for all, first and later turns with 95 % intervals.", _HEIGHT, *marks)


def _limit_line(limit: float | None, top: float) -> Markup:
    if limit is None:
        return Markup("")
    if limit > top:
        return svg.label(_FRAME.right, _FRAME.top - 12, f"SLO {limit:g} ms lies above", "end", "slo-text")
    y = svg.vertical(_FRAME, top, limit)
    line = svg.line(_FRAME.left, y, _FRAME.right, y, "slo")
    return join([line, svg.label(_FRAME.left + 4, y - 5, f"SLO {limit:g} ms", "start", "slo-text")])


def _series(points: Sequence[Point], places: Sequence[float], turns: str, name: str, top: float) -> Markup:
    offset = (TURNS.index(turns) - 1) * _SPREAD
    marks = [
        _Mark(x + offset, value, _interval(one, name), f"{turns} turns, {fmt.conc(point)}: {fmt.ms(value)} ms")
        for point, x in zip(points, places, strict=True)
        if (value := _value(one := getattr(point.ttft_ms, turns), name)) is not None
    ]
    path = [(mark.x, svg.vertical(_FRAME, top, mark.value)) for mark in marks]
    line = tag("polyline", points=svg.points(path), class_=f"line line-{turns}") if len(path) > 1 else None
    return join([_band(marks, turns, top), line, *(_dot(mark, turns, top) for mark in marks)])


def _band(marks: Sequence[_Mark], turns: str, top: float) -> Markup | None:
    known = [(mark.x, mark.interval) for mark in marks if mark.interval is not None]
    if len(known) < 2:  # noqa: PLR2004  one interval is drawn as a bar
        return None
    lows = [(x, svg.vertical(_FRAME, top, low)) for x, (low, _) in known]
    highs = [(x, svg.vertical(_FRAME, top, high)) for x, (_, high) in known]
    return tag("polygon", points=svg.points([*lows, *reversed(highs)]), class_=f"band band-{turns}")


def _dot(mark: _Mark, turns: str, top: float) -> Markup:
    y = svg.vertical(_FRAME, top, mark.value)
    parts: list[Markup] = []
    if mark.interval is not None:
        low, high = (svg.vertical(_FRAME, top, value) for value in mark.interval)
        parts.append(svg.line(mark.x, low, mark.x, high, f"whisker line-{turns}"))
    parts.append(tag("circle", tag("title", mark.tip), cx=mark.x, cy=y, r=4.0, class_=f"dot dot-{turns}"))
    return join(parts)

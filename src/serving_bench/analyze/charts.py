"""The charts of a run, each with the table of what it draws; INVALID points are not drawn."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from serving_bench.analyze import format as fmt
from serving_bench.analyze import svg
from serving_bench.analyze.markup import Markup
from serving_bench.analyze.svg import Bar, Segment
from serving_bench.report_contract import Anatomy, Point, PromptShares, Run, Verdict, Witness

TURNS = ("all", "first", "later")
PARTS = ("client", "queue", "prefill", "rest")
CAUSES = ("cached", "new", "elsewhere", "evicted", "partial")
_SHADES = 4


@dataclass(frozen=True)
class Chart:
    """A drawing, how to read it, its legend (class, name) and the numbers in it."""

    title: str
    caption: str
    drawing: Markup
    legend: tuple[tuple[str, str], ...]
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def charts(run: Run) -> list[Chart]:
    """Every chart for which the run has numbers."""
    shown = [point for point in run.points if point.validity.verdict is not Verdict.INVALID]
    made = (anatomy(shown), causes(shown), replicas(shown), ledger(shown))
    return [chart for chart in made if chart is not None]


def _headings(rows: Iterable[tuple[Point, Bar]]) -> tuple[Bar, ...]:
    """Bars with the point's name above its first one."""
    seen: set[str] = set()
    named = []
    for point, bar in rows:
        name = fmt.point_name(point)
        new = name not in seen
        seen.add(name)
        named.append(Bar(bar.name, bar.segments, bar.end, fmt.conc(point) if new else ""))
    return tuple(named)


def anatomy(points: Sequence[Point]) -> Chart | None:
    """Mean TTFT in parts: means add up, percentiles do not."""
    found = [(point, name, one) for point in points for name in TURNS if (one := getattr(point.anatomy_ms, name)).n]
    if not found:
        return None
    top = svg.ticks(max(_mean(one) for _, _, one in found))[-1]
    rows = ((point, _anatomy_bar(name, one)) for point, name, one in found)
    return Chart(
        title="Where TTFT goes",
        caption="Mean TTFT in parts: client and network, waiting for a replica and for prefill, prefill, and the rest.",
        drawing=svg.bars(
            "Mean TTFT in parts, by concurrency and turn class",
            "Stacked horizontal bars in milliseconds: client, queue, prefill, rest.",
            _headings(rows),
            top,
            "ms",
        ),
        legend=tuple((f"part-{name}", name) for name in PARTS),
        header=("point", "turns", "n", *(f"{name} {what}" for name in PARTS for what in ("mean", "p50", "p95"))),
        rows=tuple(_anatomy_row(point, name, one) for point, name, one in found),
    )


def _mean(one: Anatomy) -> float:
    return sum(max(0.0, getattr(one, name).mean or 0.0) for name in PARTS)


def _anatomy_bar(turns: str, one: Anatomy) -> Bar:
    means = {name: getattr(one, name).mean or 0.0 for name in PARTS}
    parts = tuple(Segment(value, f"part-{name}", f"{name} {fmt.ms(value)} ms") for name, value in means.items())
    return Bar(turns, parts, fmt.ms(sum(means.values())))


def _anatomy_row(point: Point, turns: str, one: Anatomy) -> tuple[str, ...]:
    parts = [getattr(one, name) for name in PARTS]
    numbers = (fmt.ms(value) for part in parts for value in (part.mean, part.p50, part.p95))
    return (fmt.point_name(point), turns, fmt.count(one.n), *numbers)


def causes(points: Sequence[Point]) -> Chart | None:
    """What became of the prompt tokens."""
    found = [(point, name, one) for point in points for name in TURNS if (one := getattr(point.cache.by_turn, name)).n]
    if not found:
        return None
    rows = ((point, _causes_bar(name, one)) for point, name, one in found)
    return Chart(
        title="Prompt tokens by cause",
        caption=(
            "cached: read from the cache. new: no replica had the block. elsewhere: only another replica had it, the "
            "price of routing. evicted: this replica had it before, the price of capacity or retention. partial: the "
            "tail shorter than a block."
        ),
        drawing=svg.bars(
            "Share of prompt tokens by cause, by concurrency and turn class",
            "Stacked horizontal bars in percent: read from cache, new, elsewhere, evicted, partial.",
            _headings(rows),
            100.0,
            "%",
        ),
        legend=tuple((f"cause-{name}", name) for name in CAUSES),
        header=("point", "turns", "requests", "prompt tokens", *CAUSES),
        rows=tuple(
            (
                fmt.point_name(point),
                name,
                fmt.count(one.n),
                fmt.count(one.prompt_tokens),
                *(fmt.share(getattr(one, cause)) for cause in CAUSES),
            )
            for point, name, one in found
        ),
    )


def _causes_bar(turns: str, one: PromptShares) -> Bar:
    shares = {name: 100 * (getattr(one, name) or 0.0) for name in CAUSES}
    parts = tuple(Segment(value, f"cause-{name}", f"{name} {value:.1f} %") for name, value in shares.items())
    return Bar(turns, parts, fmt.share(one.cached))


def replicas(points: Sequence[Point]) -> Chart | None:
    """Share of the requests that each replica got."""
    found = [point for point in points if point.imbalance is not None]
    if not found:
        return None
    return Chart(
        title="Requests per replica",
        caption="Share of the profiling requests of each replica; at the end the busiest one against the mean.",
        drawing=svg.bars(
            "Share of requests per replica, by concurrency",
            "One bar per concurrency, divided among the replicas, in percent.",
            [_replicas_bar(point) for point in found],
            100.0,
            "%",
        ),
        legend=(),
        header=("point", "replica", "requests", "prompt tokens", "cached tokens", "computed tokens"),
        rows=tuple(row for point in found for row in _replica_rows(point)),
    )


def _replicas_bar(point: Point) -> Bar:
    total = sum(one.requests or 0 for one in point.replicas)
    parts = tuple(
        Segment(
            100 * (one.requests or 0) / total,
            f"shade-{one.index % _SHADES}",
            f"replica {one.index}: {one.requests} requests",
            f"{one.index}: {100 * (one.requests or 0) / total:.0f} %",
        )
        for one in point.replicas
    )
    return Bar(fmt.point_name(point), parts, f"{point.imbalance:.2f}x")


def _replica_rows(point: Point) -> Iterable[tuple[str, ...]]:
    for one in point.replicas:
        known = one.prompt_tokens is not None and one.cached_tokens is not None
        computed = (one.prompt_tokens or 0) - (one.cached_tokens or 0) if known else None
        numbers = (one.requests, one.prompt_tokens, one.cached_tokens, computed)
        yield (fmt.point_name(point), f"{one.index} ({one.endpoint})", *(fmt.count(number) for number in numbers))


def ledger(points: Sequence[Point]) -> Chart | None:
    """The witnesses of cached tokens side by side."""
    found = [(point, one) for point in points for one in point.cache.witnesses]
    if not any(one.share is not None for _, one in found):
        return None
    rows = ((point, _witness_bar(one)) for point, one in found)
    return Chart(
        title="Cache ledger",
        caption="Share of prompt tokens read from cache, as told by each independent source.",
        drawing=svg.bars(
            "Cached share of prompt tokens, by concurrency and witness",
            "One bar per witness, in percent.",
            _headings(rows),
            100.0,
            "%",
        ),
        legend=(),
        header=("point", "witness", "cached tokens", "prompt tokens", "share", "source, or why it is not known"),
        rows=tuple(
            (
                fmt.point_name(point),
                one.name,
                fmt.count(one.cached_tokens),
                fmt.count(one.prompt_tokens),
                fmt.share(one.share),
                one.note,
            )
            for point, one in found
        ),
    )


def _witness_bar(one: Witness) -> Bar:
    if one.share is None:
        return Bar(one.name, (), "not known")
    part = Segment(100 * one.share, "cause-cached", f"{one.name} {one.share:.1%}")
    return Bar(one.name, (part,), fmt.share(one.share))

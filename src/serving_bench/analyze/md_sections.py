"""The folded sections of the Markdown views: the detail behind the first table."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from serving_bench.analyze import format as fmt
from serving_bench.analyze import md
from serving_bench.report_contract import Anatomy, Distribution, Point, PromptShares, Run, Verdict

MARKED = "\\* fewer than 10 samples lie beyond the percentile\n"

Cell = Callable[[str], str]
Section = Callable[[Run], str]

_CLASSES = ("all", "first", "later")


def cells(point: Point) -> Cell:
    """How a number of this point is shown: struck if it is INVALID."""
    return md.struck if point.validity.verdict is Verdict.INVALID else str


def _commands(run: Run) -> str:
    listed = (f"- {name}: {md.inert(command, 2_000)}\n" for name, command in run.commands.items())
    return md.details("Commands", "".join(listed)) if run.commands else ""


def _ttft(run: Run) -> str:
    header = ("point", "turns", "n", "mean", "p50", "p50 interval", "p90", "p95", "p95 interval", "p99", "max")
    rows = [_ttft_row(point, name, getattr(point.ttft_ms, name)) for point in run.points for name in _CLASSES]
    return md.details("TTFT by turn, ms", md.table(header, rows, left=2) + "\n" + MARKED)


def _ttft_row(point: Point, turns: str, one: Distribution) -> tuple[str, ...]:
    numbers = (
        fmt.count(one.n),
        fmt.ms(one.mean),
        fmt.percentile(one, "p50"),
        fmt.interval(one.p50_ci) or fmt.NONE,
        fmt.percentile(one, "p90"),
        fmt.percentile(one, "p95"),
        fmt.interval(one.p95_ci) or fmt.NONE,
        fmt.percentile(one, "p99"),
        fmt.ms(one.max),
    )
    cell = cells(point)
    name = f"no {turns} turns" if not one.n and turns != "all" else turns
    return (fmt.point_name(point), name, *(cell(number).replace("*", "\\*") for number in numbers))


def _ledger(run: Run) -> str:
    header = ("point", "witness", "what it says", "cached tokens", "prompt tokens", "cached share")
    rows = [
        (
            fmt.point_name(point),
            one.name,
            md.inert(one.note),
            *(
                cells(point)(text)
                for text in (fmt.count(one.cached_tokens), fmt.count(one.prompt_tokens), fmt.share(one.share))
            ),
        )
        for point in run.points
        for one in point.cache.witnesses
    ]
    return md.details("Cache ledger", md.table(header, rows, left=3)) if rows else ""


def _misses(run: Run) -> str:
    header = ("point", "turns", "n", "cached", "new", "elsewhere", "evicted", "partial", "reusable at best")
    rows = [
        _misses_row(point, name, getattr(point.cache.by_turn, name))
        for point in run.points
        for name in _CLASSES
        if getattr(point.cache.by_turn, name).n
    ]
    legend = (
        "new: no replica had the block; elsewhere: only another replica had it (routing); evicted: this replica had it "
        "before and did not reuse it (capacity, retention); partial: the tail shorter than a block.\n"
    )
    return md.details("Prompt tokens by cause", md.table(header, rows, left=2) + "\n" + legend) if rows else ""


def _misses_row(point: Point, turns: str, one: PromptShares) -> tuple[str, ...]:
    causes = (one.cached, one.new, one.elsewhere, one.evicted, one.partial)
    best = sum(value or 0.0 for value in (one.cached, one.elsewhere, one.evicted))
    numbers = (fmt.count(one.n), *(fmt.share(value) for value in causes), fmt.share(best))
    return (fmt.point_name(point), turns, *(cells(point)(number) for number in numbers))


def _anatomy(run: Run) -> str:
    header = ("point", "turns", "n", "client p50", "p95", "queue p50", "p95", "prefill p50", "p95", "rest p50", "p95")
    rows = [
        _anatomy_row(point, name, getattr(point.anatomy_ms, name))
        for point in run.points
        for name in _CLASSES
        if getattr(point.anatomy_ms, name).n
    ]
    return md.details("Anatomy of TTFT, ms", md.table(header, rows, left=2)) if rows else ""


def _anatomy_row(point: Point, turns: str, one: Anatomy) -> tuple[str, ...]:
    parts = (one.client, one.queue, one.prefill, one.rest)
    numbers = (fmt.count(one.n), *(fmt.ms(value) for part in parts for value in (part.p50, part.p95)))
    return (fmt.point_name(point), turns, *(cells(point)(number) for number in numbers))


def _routing(run: Run) -> str:
    header = ("point", "replica", "requests", "share", "prompt tokens", "cached tokens")
    rows = [row for point in run.points for row in _routing_rows(point)]
    moved = [
        f"- {fmt.point_name(point)}: {point.sessions_moved} conversations moved between replicas"
        for point in run.points
        if point.sessions_moved is not None
    ]
    return md.details("Routing", md.table(header, rows, left=2) + "\n" + "\n".join(moved) + "\n") if rows else ""


def _routing_rows(point: Point) -> Iterable[tuple[str, ...]]:
    total = sum(one.requests or 0 for one in point.replicas)
    for one in point.replicas:
        part = one.requests / total if one.requests is not None and total else None
        numbers = (fmt.count(one.requests), fmt.share(part), fmt.count(one.prompt_tokens), fmt.count(one.cached_tokens))
        yield (fmt.point_name(point), f"{one.index}", *(cells(point)(number) for number in numbers))


def _objectives(run: Run) -> str:
    lines = [f"- {fmt.point_name(point)}: {md.inert(fmt.objective(one))}" for point in run.points for one in point.slo]
    return md.details("Objectives", "\n".join(lines) + "\n") if lines else ""


def _unchecked(run: Run) -> str:
    """Checks that had nothing to look at: once per reason, not once per point."""
    found: dict[tuple[str, str], list[str]] = {}
    for point in run.points:
        for code, reason in point.validity.unchecked.items():
            found.setdefault((code, reason), []).append(fmt.point_name(point))
    lines = [f"- {code}: {md.inert(reason)} ({', '.join(names[:6])})" for (code, reason), names in found.items()]
    odd = [
        f"- {fmt.point_name(point)}: {count} × {md.inert(name)}"  # noqa: RUF001
        for point in run.points
        for name, count in point.oddities.items()
    ]
    body = "\n".join(lines) + "\n" + (("\nTolerated while reading:\n\n" + "\n".join(odd) + "\n") if odd else "")
    return md.details("Not checked, and tolerated", body) if lines or odd else ""


def _versions(run: Run) -> str:
    if not run.versions:
        return ""
    return ", ".join(f"{md.inert(name, 80)} {md.inert(version, 80)}" for name, version in run.versions.items()) + "\n"


DETAILS: tuple[Section, ...] = (
    _objectives, _commands, _ttft, _misses, _anatomy, _ledger, _routing, _unchecked, _versions,
)  # fmt: skip
"""Sections after the main table, the ones to keep longest first."""

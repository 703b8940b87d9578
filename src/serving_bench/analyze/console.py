"""The report in plain text: what a person sees when the command ends."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from serving_bench.analyze import format as fmt
from serving_bench.analyze.plain import plain
from serving_bench.report_contract import Point, Report, Run

WIDTH = 100

_HEADER = (
    "point", "validity", "reqs", "err", "req/s", "p50", "p95", "p95 first", "p95 later", "cached", "per replica", "SLO",
)  # fmt: skip
_LEFT = frozenset({0, 1, len(_HEADER) - 1})
_LEGEND = "TTFT in ms. first: first turn of a room, later: the rest. cached: share of prompt tokens."
_MARKED = "* fewer than 10 samples lie beyond the percentile"


def text(report: Report) -> str:
    """The whole report, at most ``WIDTH`` columns wide where names allow."""
    lines = [line for run in report.runs for line in _run(run)]
    verdict = report.verdict
    return "\n".join((*lines, *_wrapped(f"verdict: {verdict.outcome.value}. {plain(verdict.message)}"))) + "\n"


def aligned(rows: Sequence[Sequence[str]], left: frozenset[int]) -> list[str]:
    """Rows as columns of equal width; those in ``left`` are aligned left, the others right."""
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    return ["  ".join(_padded(row, widths, left)).rstrip() for row in rows]


def _padded(row: Sequence[str], widths: Sequence[int], left: frozenset[int]) -> Iterator[str]:
    for at, (cell, width) in enumerate(zip(row, widths, strict=True)):
        yield cell.ljust(width) if at in left else cell.rjust(width)


def _run(run: Run) -> list[str]:
    lines = [_title(run)]
    if run.outcome not in (None, "passed"):
        code = f" [{plain(run.code)}]" if run.code else ""
        lines += _wrapped(f"run {run.outcome} while {run.stage}: {plain(run.message)}{code}")
        lines += [f"  | {plain(line)}"[:WIDTH] for line in run.evidence[-5:]]
    if run.points:
        table = aligned([_HEADER, *(_cells(point) for point in run.points)], _LEFT)
        lines += [*table, _LEGEND]
        lines += [_MARKED] if any("*" in line for line in table) else []
    for point in run.points:
        lines += _reasons(point)
    return [*lines, ""]


def _title(run: Run) -> str:
    parts = [plain(run.config), f"on {plain(run.cluster)}" if run.cluster else ""]
    facts = [run.engine, f"{run.replicas} replicas" if run.replicas else None, run.router, run.scenario]
    facts.append(fmt.overridden(run))
    known = ", ".join(plain(fact) for fact in facts if fact)
    return " ".join(part for part in parts if part) + (f" ({known})" if known else "")


def _cells(point: Point) -> tuple[str, ...]:
    ttft, requests = point.ttft_ms, point.requests
    return (
        fmt.point_name(point),
        point.validity.verdict.value,
        str(requests.total),
        str(requests.errors + requests.cancelled),
        fmt.rate(requests.per_s),
        fmt.percentile(ttft.all, "p50"),
        fmt.percentile(ttft.all, "p95"),
        fmt.percentile(ttft.first, "p95"),
        fmt.percentile(ttft.later, "p95"),
        fmt.share(fmt.cached_share(point)),
        fmt.per_replica(point.replicas),
        fmt.objectives(point),
    )


def _reasons(point: Point) -> list[str]:
    told = (f"{reason.level.value} {reason.code}: {plain(reason.message)}" for reason in point.validity.reasons)
    return [line for one in told for line in _wrapped(f"{fmt.point_name(point)}: {one}")]


def _wrapped(line: str) -> list[str]:
    return textwrap.wrap(line, WIDTH, subsequent_indent="    ", break_on_hyphens=False) or [""]

"""``summary.md`` and ``comment.md`` from a report alone.

The comment says the verdict first, then whether it can be believed, then the
numbers; where it would be too long it sheds detail from the end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from serving_bench.analyze import format as fmt
from serving_bench.analyze import md
from serving_bench.gha import SUMMARY_LIMIT_BYTES
from serving_bench.report_contract import Anatomy, Distribution, Point, PromptShares, Report, Run, Verdict

MARKER = "<!-- serving-bench:report -->"
COMMENT_LIMIT_BYTES = 60_000

_SIGNS = {Verdict.VALID: "✅", Verdict.DEGRADED: "⚠️", Verdict.INVALID: "❌"}
_CLASSES = ("all", "first", "later")
_MARKED = "\\* fewer than 10 samples lie beyond the percentile\n"

Cell = Callable[[str], str]
Section = Callable[[Run], str]


def summary(report: Report) -> str:
    """Everything, for the job summary; below the limit at which a runner drops a summary."""
    return _fitting(report, SUMMARY_LIMIT_BYTES, "")


def comment(report: Report) -> str:
    """For the pull request: at most ``COMMENT_LIMIT_BYTES``."""
    return _fitting(report, COMMENT_LIMIT_BYTES, MARKER + "\n")


def _fitting(report: Report, limit: int, head: str) -> str:
    """The text with as many sections as fit, or else with as many rows of the main table."""
    for shown in range(len(_DETAILS), -1, -1):
        text = _text(report, head, _DETAILS[:shown])
        if len(text.encode()) <= limit:
            return text
    rows = sum(len(run.points) for run in report.runs)
    while rows > 1:
        rows //= 2
        text = _text(report, head, (), rows)
        if len(text.encode()) <= limit:
            return text
    return head + _verdict(report) + "\nThe report is too long for this place: see report.html.\n"


def _text(report: Report, head: str, sections: Sequence[Section], rows: int | None = None) -> str:
    """``rows`` bounds the points that are shown over all runs."""
    parts, left = [head + _verdict(report)], rows
    for run in report.runs:
        shown = run if left is None else run.model_copy(update={"points": run.points[:left]})
        if left is not None and not shown.points and run.points:
            continue
        parts += [_run_head(run), _glance(shown), *(section(shown) for section in sections)]
        left = None if left is None else left - len(shown.points)
    total = sum(len(run.points) for run in report.runs)
    if rows is not None and rows < total:
        parts.append(f"{total - rows} more points are in report.html.\n")
    elif len(sections) < len(_DETAILS):
        parts.append("Details were left out to fit: see report.html.\n")
    return "\n".join(part for part in parts if part)


def _verdict(report: Report) -> str:
    verdict = report.verdict
    return f"### serving-bench: {verdict.outcome.value}\n\n{md.inert(verdict.message)}\n"


def _run_head(run: Run) -> str:
    facts = [run.engine, f"{run.replicas} replicas" if run.replicas else None, run.router, run.model, run.scenario]
    known = ", ".join(md.inert(fact, 120) for fact in facts if fact)
    where = f" on {md.inert(run.cluster, 120)}" if run.cluster else ""
    lines = [f"#### {md.inert(run.config, 200)}{where}\n", f"{known}\n" if known else ""]
    if run.outcome not in (None, "passed"):
        code = f" [{md.inert(run.code)}]" if run.code else ""
        lines.append(
            f"❌ **The run {md.inert(run.outcome)} while {md.inert(run.stage)}:** {md.inert(run.message)}{code}\n"
        )
        lines += [f"> {md.inert(line, 300)}  " for line in run.evidence[-8:]] + [""]
    lines += [f"- {md.inert(note)}" for note in run.notes[:8]] + ([""] if run.notes else [])
    return "\n".join(line for line in lines if line) + "\n"


def _cells(point: Point) -> Cell:
    """How a number of this point is shown: struck if it is INVALID."""
    return md.struck if point.validity.verdict is Verdict.INVALID else str


def _validity(point: Point) -> str:
    codes = "; ".join(reason.code for reason in point.validity.reasons[:3])
    return f"{_SIGNS[point.validity.verdict]} {point.validity.verdict.value}" + (f" ({codes})" if codes else "")


def _glance(run: Run) -> str:
    """The table that is read first."""
    if not run.points:
        return "There is no point to show.\n"
    header = (
        "point", "can it be believed?", "TTFT p95 first, ms", "TTFT p95 later", "TTFT p95 all", "95 % interval", "cached",
        "requests per replica", "SLO", "requests", "errors", "req/s",
    )  # fmt: skip
    rows = [_glance_row(point) for point in run.points]
    marked = any("*" in cell for row in rows for cell in row[2:5])
    reasons = [
        f"- {fmt.point_name(point)} {reason.level.value} {reason.code}: {md.inert(reason.message)}"
        for point in run.points
        for reason in point.validity.reasons
    ]
    listed = "\n".join(reasons[:40]) + ("\n- …" if len(reasons) > 40 else "") + "\n" if reasons else ""  # noqa: PLR2004
    rows = [tuple(cell.replace("*", "\\*") for cell in row) for row in rows]
    return "\n".join(part for part in (md.table(header, rows, left=2), _MARKED if marked else "", listed) if part)


def _glance_row(point: Point) -> tuple[str, ...]:
    ttft, requests, cell = point.ttft_ms, point.requests, _cells(point)
    numbers = (
        fmt.percentile(ttft.first, "p95"),
        fmt.percentile(ttft.later, "p95"),
        fmt.percentile(ttft.all, "p95"),
        fmt.interval(ttft.all.p95_ci) or fmt.NONE,
        fmt.share(fmt.cached_share(point)),
        _replicas(point),
        fmt.objectives(point),
        fmt.count(requests.total),
        fmt.count(requests.errors + requests.cancelled),
        fmt.rate(requests.per_s),
    )
    return (fmt.point_name(point), _validity(point), *(cell(number) for number in numbers))


def _replicas(point: Point) -> str:
    if not point.replicas or any(one.requests is None for one in point.replicas):
        return fmt.NONE
    return " / ".join(fmt.count(one.requests) for one in point.replicas)


def _ttft(run: Run) -> str:
    header = ("point", "turns", "n", "mean", "p50", "p50 interval", "p90", "p95", "p95 interval", "p99", "max")
    rows = [_ttft_row(point, name, getattr(point.ttft_ms, name)) for point in run.points for name in _CLASSES]
    return md.details("TTFT by turn, ms", md.table(header, rows, left=2) + "\n" + _MARKED)


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
    cell = _cells(point)
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
                _cells(point)(text)
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
    return (fmt.point_name(point), turns, *(_cells(point)(number) for number in numbers))


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
    return (fmt.point_name(point), turns, *(_cells(point)(number) for number in numbers))


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
        yield (fmt.point_name(point), f"{one.index}", *(_cells(point)(number) for number in numbers))


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


_DETAILS: tuple[Section, ...] = (
    _objectives, _ttft, _misses, _anatomy, _ledger, _routing, _unchecked, _versions,
)  # fmt: skip
"""Sections after the main table, the ones to keep longest first."""

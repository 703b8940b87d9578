"""``summary.md`` and ``comment.md`` from a report alone.

The comment says the verdict first, then whether it can be believed, then the
numbers; where it would be too long it sheds detail from the end.
"""

from __future__ import annotations

from collections.abc import Sequence

from serving_bench.analyze import format as fmt
from serving_bench.analyze import md
from serving_bench.analyze.md_sections import DETAILS, MARKED, Section, cells
from serving_bench.gha import SUMMARY_LIMIT_BYTES
from serving_bench.report_contract import Point, Report, Run, Verdict

MARKER = "<!-- serving-bench:report -->"
COMMENT_LIMIT_BYTES = 60_000

_SIGNS = {Verdict.VALID: "✅", Verdict.DEGRADED: "⚠️", Verdict.INVALID: "❌"}


def summary(report: Report) -> str:
    """Everything, for the job summary; below the limit at which a runner drops a summary."""
    return _fitting(report, SUMMARY_LIMIT_BYTES, "")


def comment(report: Report) -> str:
    """For the pull request: at most ``COMMENT_LIMIT_BYTES``."""
    return _fitting(report, COMMENT_LIMIT_BYTES, MARKER + "\n")


def _fitting(report: Report, limit: int, head: str) -> str:
    """The text with as many sections as fit, or else with as many rows of the main table."""
    for shown in range(len(DETAILS), -1, -1):
        text = _text(report, head, DETAILS[:shown])
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
    elif len(sections) < len(DETAILS):
        parts.append("Details were left out to fit: see report.html.\n")
    return "\n".join(part for part in parts if part)


def _verdict(report: Report) -> str:
    verdict = report.verdict
    return f"### serving-bench: {verdict.outcome.value}\n\n{md.inert(verdict.message)}\n"


def _run_head(run: Run) -> str:
    facts = [run.engine, f"{run.replicas} replicas" if run.replicas else None, run.router, run.model, run.scenario]
    facts.append(fmt.overridden(run))
    known = ", ".join(md.inert(fact, 120) for fact in facts if fact)
    where = f" on {md.inert(run.cluster, 120)}" if run.cluster else ""
    lines = [f"#### {md.inert(run.config, 200)}{where}\n", f"{known}\n" if known else ""]
    if run.outcome not in (None, "passed"):
        code = f" [{md.inert(run.code)}]" if run.code else ""
        lines.append(
            f"❌ **The run {md.inert(run.outcome)} while {md.inert(run.stage)}:** {md.inert(run.message)}{code}\n"
        )
        lines += [f"> {md.inert(line, 240)}  " for line in run.evidence[-6:]] + [""]
    lines += [f"- {md.inert(note)}" for note in run.notes[:8]] + ([""] if run.notes else [])
    return "\n".join(line for line in lines if line) + "\n"


def _validity(point: Point) -> str:
    codes = "; ".join(reason.code for reason in point.validity.reasons[:3])
    return f"{_SIGNS[point.validity.verdict]} {point.validity.verdict.value}" + (f" ({codes})" if codes else "")


def _glance(run: Run) -> str:
    """The table that is read first."""
    if not run.points:
        return "There is no point to show.\n"
    header = (
        "point", "can it be believed?", "TTFT p95 first, ms", "TTFT p95 later", "TTFT p95 all", "95 % interval",
        "cached", "requests per replica", "SLO", "requests", "errors", "req/s",
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
    return "\n".join(part for part in (md.table(header, rows, left=2), MARKED if marked else "", listed) if part)


def _glance_row(point: Point) -> tuple[str, ...]:
    ttft, requests, cell = point.ttft_ms, point.requests, cells(point)
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

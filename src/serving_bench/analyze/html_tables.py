"""Tables and lists of the page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from serving_bench.analyze import format as fmt
from serving_bench.analyze.charts import TURNS
from serving_bench.analyze.markup import Markup, join, tag
from serving_bench.report_contract import Distribution, Point, Run, Verdict


def table(header: Sequence[str], rows: Iterable[Sequence[str]], class_: str = "") -> Markup:
    """A table in a box of its own that scrolls, so that the page never does."""
    head = tag("thead", tag("tr", *(tag("th", name, scope="col") for name in header)))
    body = tag("tbody", *(_row(header, row) for row in rows))
    return tag("div", tag("table", head, body, class_=class_ or None), class_="scroll", tabindex="0", role="group")


def _row(header: Sequence[str], row: Sequence[str]) -> Markup:
    first, *rest = row
    cells = (tag("td", cell, data_label=name) for name, cell in zip(header[1:], rest, strict=True))
    return tag("tr", tag("th", first, scope="row"), *cells)


def fold(summary: str, *body: Markup) -> Markup:
    return tag("details", tag("summary", summary), *body)


def _cell(point: Point, text: str) -> str:
    """A number of a point: struck if the point is INVALID."""
    if point.validity.verdict is Verdict.INVALID and any(character.isdigit() for character in text):
        return tag("s", text)
    return text


def _pill(text: str, kind: str) -> Markup:
    return tag("span", text, class_=f"pill {kind}")


_OBJECTIVE = {"met": "good", "missed": "bad", "not known": "unsure"}


def glance(run: Run) -> Markup:
    """What is read first, a row per concurrency."""
    if not run.points:
        return tag("p", "There is no point to show.", class_="lead")
    header = (
        "conc", "can it be believed?", "TTFT p95 first turns, ms", "TTFT p95 later turns, ms", "TTFT p95 all turns, ms",
        "cached share", "requests per replica", "SLO", "requests", "errors", "req/s",
    )  # fmt: skip
    return table(header, [_glance_row(point) for point in run.points], class_="glance")


def _glance_row(point: Point) -> tuple[str, ...]:
    ttft, requests, verdict = point.ttft_ms, point.requests, point.validity.verdict.value
    objectives = fmt.objectives(point)
    shown = objectives if objectives == fmt.NONE else _pill(objectives, _OBJECTIVE[objectives])
    counts = [one.requests for one in point.replicas]
    split = fmt.NONE if not counts or None in counts else " / ".join(fmt.count(count) for count in counts)
    return (
        fmt.point_name(point).removeprefix("c"),
        _pill(verdict, f"verdict-{verdict.lower()}"),
        _with_interval(point, ttft.first),
        _with_interval(point, ttft.later),
        _with_interval(point, ttft.all),
        _cell(point, fmt.share(fmt.cached_share(point))),
        _cell(point, split),
        shown,
        _cell(point, fmt.count(requests.total)),
        _cell(point, fmt.count(requests.errors + requests.cancelled)),
        _cell(point, fmt.rate(requests.per_s)),
    )


def _with_interval(point: Point, one: Distribution) -> Markup:
    value = _cell(point, fmt.percentile(one, "p95"))
    if not one.n:
        return tag("span", "none (n = 0)", class_="muted")
    within = tag("small", _cell(point, fmt.interval(one.p95_ci))) if one.p95_ci else None
    return tag("span", tag("b", value), within, tag("small", f"n = {one.n:,}"), class_="stacked")


def reasons(run: Run) -> Markup | None:
    """Why a point is not simply VALID."""
    told = [
        tag(
            "li",
            _pill(reason.level.value, f"verdict-{reason.level.value.lower()}"),
            tag("b", fmt.conc(point)),
            tag("span", reason.message),
            tag("code", reason.code),
        )
        for point in run.points
        for reason in point.validity.reasons
    ]
    return tag("ul", *told, class_="reasons") if told else None


def numbers(run: Run) -> Markup | None:
    """Every distribution of every point."""
    header = ("conc", "metric, ms", "n", "mean", "p50", "p50 interval", "p90", "p95", "p95 interval", "p99", "max")
    rows = [
        _distribution(point, name, one)
        for point in run.points
        for name, one in (
            *((f"TTFT, {turns} turns", getattr(point.ttft_ms, turns)) for turns in TURNS),
            ("inter-token latency", point.itl_ms),
            ("request latency", point.e2e_ms),
        )
    ]
    return fold("All latencies", table(header, rows)) if rows else None


def _distribution(point: Point, name: str, one: Distribution) -> tuple[str, ...]:
    values = (
        fmt.ms(one.mean),
        fmt.percentile(one, "p50"),
        fmt.interval(one.p50_ci) or fmt.NONE,
        fmt.percentile(one, "p90"),
        fmt.percentile(one, "p95"),
        fmt.interval(one.p95_ci) or fmt.NONE,
        fmt.percentile(one, "p99"),
        fmt.ms(one.max),
    )
    return (fmt.point_name(point).removeprefix("c"), name, fmt.count(one.n), *(_cell(point, value) for value in values))


def conditions(run: Run) -> Markup:
    """What was checked, what was not and why, what is not known and why, what was tolerated."""
    return fold("Checks, and what is not known", *(_conditions(point) for point in run.points))


def _conditions(point: Point) -> Markup:
    validity = point.validity
    groups = (
        ("Checked", ((code, "") for code in validity.checked)),
        ("Not checked", validity.unchecked.items()),
        ("Not known", point.notes.items()),
        ("Errors", ((name, f"{count}") for name, count in point.errors.items())),
        ("Tolerated while reading", ((name, f"{count}") for name, count in point.oddities.items())),
        ("Objectives", ((fmt.objective(check), "") for check in point.slo)),
    )
    parts = [part for title, items in groups if (part := _group(title, items)) is not None]
    return tag("section", tag("h3", fmt.point_name(point)), *parts)


def _group(title: str, items: Iterable[tuple[str, str]]) -> Markup | None:
    listed = [tag("li", tag("code", name), Markup(" "), text) for name, text in items]
    return join([tag("h4", title), tag("ul", *listed, class_="plain")]) if listed else None


def facts(run: Run) -> Markup:
    """What was run, with what."""
    known = {
        "engine": run.engine,
        "replicas": run.replicas,
        "GPUs per replica": run.gpus,
        "router": run.router,
        **{f"{name} command": command for name, command in run.commands.items()},
        "model": run.model,
        "image": run.image,
        "scenario": run.scenario,
        "overridden by the command line": ", ".join(f"{name} {value}" for name, value in run.overrides.items()) or None,
        "cache at the start of a point": run.cache_state,
        "workload": run.workload,
        "comparability": run.comparability,
        "analyzed from": run.source,
        **run.versions,
    }
    pairs = [part for name, value in known.items() if value is not None for part in _pair(name, str(value))]
    notes = [tag("li", note) for note in run.notes]
    return fold("What was run", tag("dl", *pairs), tag("ul", *notes) if notes else Markup(""))


def _pair(name: str, value: str) -> tuple[Markup, Markup]:
    return tag("dt", name), tag("dd", value)

"""``report.html``: one self-contained page from a report alone.

No script, no request: styles and charts are inline. It follows the reader's
light or dark setting and folds tables into cards on a narrow screen.
"""

from __future__ import annotations

from importlib.resources import files

from serving_bench.analyze import format as fmt
from serving_bench.analyze.charts import Chart, charts
from serving_bench.analyze.html_tables import conditions, facts, fold, glance, numbers, reasons, table
from serving_bench.analyze.markup import Markup, join, lines, tag
from serving_bench.analyze.ttft_chart import ttft_charts
from serving_bench.report_contract import Report, Run, Verdict

_SPACE = Markup(" ")


def page(report: Report) -> str:
    """The whole document."""
    title = f"serving-bench: {report.verdict.outcome.value}"
    style = files("serving_bench.analyze").joinpath("report.css").read_text(encoding="utf-8")
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", title),
        Markup(f"<style>{style}</style>"),
    )
    body = tag("body", tag("main", _verdict(report), *(_run(run) for run in report.runs), _foot(report)))
    return f"<!doctype html>\n{tag('html', head, body, lang='en')}\n"


def _verdict(report: Report) -> Markup:
    verdict = report.verdict
    outcome = tag("span", verdict.outcome.value, class_=f"pill outcome-{verdict.outcome.value.lower()}")
    return tag(
        "header",
        tag("p", "serving-bench report", class_="eyebrow"),
        tag("h1", outcome),
        tag("p", verdict.message, class_="lead"),
    )


def _run(run: Run) -> Markup:
    where = tag("span", f"on {run.cluster}", class_="muted") if run.cluster else None
    drawn = [*ttft_charts(run), *charts(run)]
    return tag(
        "section",
        tag("h2", run.config, _SPACE, where),
        tag("p", run.description, class_="muted") if run.description else None,
        _failure(run),
        glance(run),
        reasons(run),
        _left_out(run),
        tag("div", *(_figure(chart) for chart in drawn), class_="charts") if drawn else None,
        numbers(run),
        conditions(run),
        facts(run),
        class_="run",
    )


def _failure(run: Run) -> Markup | None:
    if run.outcome in (None, "passed"):
        return None
    told = f"The run {run.outcome} while {run.stage}: {run.message or 'no message'}"
    code = tag("code", run.code) if run.code else None
    evidence = tag("pre", lines(run.evidence), tabindex="0") if run.evidence else None
    return tag("div", tag("p", told, _SPACE, code), evidence, class_="failure", role="alert")


def _left_out(run: Run) -> Markup | None:
    invalid = [fmt.point_name(point) for point in run.points if point.validity.verdict is Verdict.INVALID]
    if not invalid:
        return None
    return tag("p", f"INVALID points are not drawn: {', '.join(invalid)}. Their numbers are struck.", class_="muted")


def _figure(chart: Chart) -> Markup:
    legend = [tag("li", tag("span", class_=f"swatch {class_}"), name) for class_, name in chart.legend]
    return tag(
        "figure",
        tag("figcaption", tag("strong", chart.title), tag("span", chart.caption, class_="muted")),
        tag("ul", *legend, class_="legend") if legend else None,
        chart.drawing,
        fold("Numbers", table(chart.header, chart.rows)),
    )


def _foot(report: Report) -> Markup:
    marked = "* fewer than 10 samples lie beyond the percentile. - not known. Times in milliseconds."
    return tag("footer", tag("p", marked), tag("p", join([f"serving-bench {report.tool_version}"])))

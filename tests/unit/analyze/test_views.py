"""Summary, comment and page: what they show, their limits, and that nothing hostile comes alive."""

from __future__ import annotations

import re
from collections.abc import Callable
from html.parser import HTMLParser
from typing import Any

import pytest

from serving_bench.analyze import console, html, inputs, markdown, report
from serving_bench.analyze.md import inert
from serving_bench.analyze.plain import plain
from serving_bench.analyze.svg import ticks
from serving_bench.contracts import Plan, ProcessSpec
from serving_bench.report_contract import Point, Reason, Replica, Report, Validity, Verdict

HOSTILE = [
    "@team please | look",
    "<script>alert(1)</script>",
    "`code` ~~struck~~ **bold** [link](javascript:x) ![i](x)",
    "line\nbreak\r\n| a | b |\n# heading",
    "x" * 10_000,
    "\u202eright to left\u202c \u200f",
    "\x00\x1b[31mred\x07",
    "#123 owner/repo#4 www.example.com https://example.com :tada: $x$ a@b.example",
    "</style></title>--><!-- -->",
    '"quoted" onload="x"',
]


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory, build_sample: Any) -> Report:
    return report.build([inputs.load(build_sample(tmp_path_factory.mktemp("views") / "run").path)])


def with_points(sample: Report, *points: Point, **run: Any) -> Report:
    return sample.model_copy(update={"runs": (sample.runs[0].model_copy(update={"points": points, **run}),)})


def valid(point: Point, conc: int, **changes: Any) -> Point:
    return point.model_copy(update={"conc": conc, "validity": Validity(verdict=Verdict.VALID), **changes})


def invalid(point: Point, conc: int) -> Point:
    reason = Reason(code="REPLICA_DIED", message="replica 0 ended", level=Verdict.INVALID)
    return point.model_copy(update={"conc": conc, "validity": Validity(verdict=Verdict.INVALID, reasons=(reason,))})


def large(sample: Report, text: str = "name") -> Report:
    """200 points with 8 replicas each."""
    point = sample.runs[0].points[0]
    replicas = tuple(Replica(index=n, endpoint=f"http://10.0.0.{n}:8000", requests=100_000 + n) for n in range(8))
    reason = Reason(code="IMBALANCE", message=text, level=Verdict.DEGRADED)
    judged = Validity(verdict=Verdict.DEGRADED, reasons=(reason,), unchecked={"CONTRADICTION": text})
    points = [
        point.model_copy(update={"conc": n + 1, "replicas": replicas, "validity": judged, "notes": {text: text}})
        for n in range(200)
    ]
    return with_points(sample, *points)


class Page(HTMLParser):
    """Checks that elements are balanced, and collects what the page holds."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[tuple[str, str]] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append((self.open[-1] if self.open else "", data))

    def count(self, tag: str) -> int:
        return sum(name == tag for name, _ in self.tags)


def test_the_comment_has_marker_verdict_and_numbers_in_this_order(sample: Report) -> None:
    text = markdown.comment(sample)
    assert text.startswith("<!-- serving-bench:report -->\n### serving-bench: NO_BASELINE\n")
    row = next(line for line in text.splitlines() if line.startswith("| c4 |"))
    for expected in (
        "DEGRADED (WARMUP_REPLAYED)",
        "72.1\\*",
        "66.3",
        "66.9",
        "64.3 to 71.8",
        "92.0%",
        "166 / 97",
        "met",
    ):
        assert expected in row
    assert "<!--" not in markdown.summary(sample)


def test_every_table_row_has_as_many_cells_as_its_header(sample: Report) -> None:
    for text in (markdown.summary(sample), markdown.summary(with_points(sample, *sample.runs[0].points, config="a|b"))):
        for block in re.findall(r"(?:^\|.*\n)+", text, flags=re.MULTILINE):
            assert len({line.count("|") for line in block.splitlines()}) == 1, block


def test_numbers_of_an_invalid_point_are_struck_everywhere(sample: Report) -> None:
    found = with_points(sample, invalid(sample.runs[0].points[0], 4))
    assert "~~66.9~~" in markdown.comment(found)
    assert "| 66.9 |" not in markdown.summary(found)
    page = Page(html.page(found))
    assert ("s", "66.9") in page.words
    assert ("b", "66.9") not in page.words
    assert page.count("svg") == 0, "nothing is drawn of an INVALID point"


@pytest.mark.parametrize("text", ["name", "x" * 390, "@|`<>" * 70])
def test_limits_hold_for_200_points_with_8_replicas(sample: Report, text: str) -> None:
    found = large(sample, text)
    comment, summary = markdown.comment(found), markdown.summary(found)
    assert len(comment.encode()) <= 60_000
    assert len(summary.encode()) <= 900 * 1024
    for view in (comment, summary):
        assert "serving-bench: NO_BASELINE" in view
        assert "| c1 |" in view
    assert "Details were left out" in comment or "more points are in report.html" in comment


def test_a_small_report_sheds_nothing(sample: Report) -> None:
    assert "left out" not in markdown.comment(sample)
    assert markdown.comment(sample).count("<details>") == markdown.summary(sample).count("<details>") == 8


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_names_stay_inert(sample: Report, text: str) -> None:
    point = sample.runs[0].points[0]
    reason = Reason(code="REPLICA_DIED", message=text, level=Verdict.INVALID)
    judged = point.model_copy(
        update={
            "validity": Validity(verdict=Verdict.DEGRADED, reasons=(reason,), unchecked={"X": text}),
            "errors": {text: 1},
            "oddities": {text: 1},
            "notes": {text: text},
            "replicas": (Replica(index=0, endpoint=text, requests=1),),
        }
    )
    names = dict.fromkeys(
        ("config", "cluster", "description", "message", "engine", "router", "model", "scenario"), text
    )
    found = with_points(
        sample, judged, **names, outcome="failed", evidence=(text,), versions={text: text}, notes=(text,)
    )
    for view in (markdown.comment(found), markdown.summary(found)):
        body = view.replace(markdown.MARKER, "")
        for line in body.splitlines():
            bare = re.sub(r"&#\d+;|</?(details|summary)>", "", line)
            assert not re.search(r"[@<`$]", bare), line
            assert not re.search(r"https?:|www\.", bare), line
            assert "](" not in bare
        for block in re.findall(r"(?:^\|.*\n)+", body, flags=re.MULTILINE):
            assert len({line.count("|") for line in block.splitlines()}) == 1
    page = Page(html.page(found))
    assert page.count("script") == 0
    assert page.count("style") == 1
    assert all("onload" not in attributes for _, attributes in page.tags)
    everything = console.text(found) + markdown.comment(found) + html.page(found)
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f\u202a-\u202e\u200e\u200f]", everything)


def test_mentions_and_references_are_broken_in_the_rendered_text() -> None:
    """GitHub looks for them after Markdown: an entity alone would be the character again."""
    assert inert("@team") == "&#64;&#8203;team"
    assert inert("#12") == "&#35;&#8203;12"


def test_plain_cuts_and_flattens() -> None:
    assert plain("a\n\tb\x00c") == "a b c"
    assert len(plain("x" * 9_999)) == 400


def test_the_page_is_self_contained_and_accessible(sample: Report) -> None:
    text = html.page(sample)
    page = Page(text)
    assert not re.search(
        r"""(?:src|href|url\(|@import|<link|<script|https?:)""", text.replace("http://127.0.0.1:1810", "")
    )
    assert text.startswith("<!doctype html>")
    assert ("html", {"lang": "en"}) in page.tags
    assert "prefers-color-scheme: dark" in text
    assert any(attributes.get("name") == "viewport" for _, attributes in page.tags)
    drawings = [attributes for name, attributes in page.tags if name == "svg"]
    assert len(drawings) == page.count("figure") == 6
    assert all(attributes["role"] == "img" and attributes["aria-label"] for attributes in drawings)
    assert page.count("desc") == 6
    assert page.count("figcaption") == 6


def test_the_chart_draws_every_valid_point_and_turn_class(sample: Report) -> None:
    point = sample.runs[0].points[0]
    found = with_points(sample, valid(point, 4), valid(point, 8), invalid(point, 16))
    page = Page(html.page(found))
    dots = [attributes["class"] or "" for name, attributes in page.tags if name == "circle"]
    assert sorted(dots) == sorted([f"dot dot-{turns}" for turns in ("all", "first", "later")] * 4)
    assert sum(name == "polygon" for name, _ in page.tags) == 6
    words = {word for _, word in page.words}
    assert {"SLO 100 ms", "concurrency", "INVALID points are not drawn: c16. Their numbers are struck."} <= words


def test_no_first_turns_is_said_and_never_zero(sample: Report) -> None:
    point = sample.runs[0].points[0]
    nothing = point.ttft_ms.model_copy(
        update={
            "first": point.ttft_ms.first.model_copy(
                update=dict.fromkeys(("mean", "p50", "p90", "p95", "p99", "max", "p50_ci", "p95_ci"))
                | {"n": 0, "marks": ()}
            )
        }
    )
    found = with_points(sample, point.model_copy(update={"ttft_ms": nothing}))
    assert "no first turns | 0 | - |" in markdown.summary(found)
    assert ("span", "none (n = 0)") in Page(html.page(found)).words


def test_what_the_command_line_had_set_is_said_in_every_view(sample: Report) -> None:
    run = sample.runs[0].model_copy(update={"overrides": {"conc": "2", "duration": "60"}})
    report = sample.model_copy(update={"runs": (run,)})
    for view in (console.text(report), markdown.summary(report), markdown.comment(report)):
        assert "overridden: conc 2, duration 60" in view
    assert "conc 2, duration 60" in html.page(report)


def test_the_commands_tell_one_run_from_another(sample: Report, plan_of: Callable[..., Plan]) -> None:
    """What differs between two variants is a flag or a variable, and their descriptions may be the same."""
    router = ProcessSpec(
        kind="dynamo.frontend", argv=("python3", "-m", "dynamo.frontend", "--router-mode", "kv"), env={"A": "b c"}
    )
    commands = report.planned(plan_of(router=router))["commands"]
    assert commands == {
        "serve": "python3 -m dynamo.mocker",
        "router": "A='b c' python3 -m dynamo.frontend --router-mode kv",
    }
    run = sample.runs[0].model_copy(update={"commands": commands})
    shown = sample.model_copy(update={"runs": (run,)})
    for view in (markdown.summary(shown), markdown.comment(shown)):
        assert "- router: A='b c' python3 -m dynamo.frontend --router-mode kv" in view
    assert ("dd", commands["router"]) in Page(html.page(shown)).words


def test_the_console_is_at_most_100_columns_wide(sample: Report) -> None:
    wide = large(sample)
    assert max(len(line) for line in console.text(wide).splitlines()) <= 100


@pytest.mark.parametrize(
    ("top", "expected"),
    [(0.0, [0, 1]), (100.0, [0, 25, 50, 75, 100]), (143.0, [0, 50, 100, 150]), (0.7, [0, 0.2, 0.4, 0.6, 0.8])],
)
def test_ticks_are_round_and_hold_the_top(top: float, expected: list[float]) -> None:
    assert ticks(top) == pytest.approx(expected)

"""Prometheus text, counters and their aliases."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from serving_bench.analyze import counters
from serving_bench.analyze.counters import Growth, growth
from serving_bench.analyze.promtext import PromTextError, Scrape, backwards, delta, parse

TEXT = """\
# HELP requests_total Requests.
# TYPE requests_total counter
requests_total{path="/a",note="quote \\" backslash \\\\ newline \\n"} 3
requests_total{path="/b",} 4.5 1796066237821
# TYPE waiting gauge
waiting 7
# TYPE took_seconds histogram
took_seconds_bucket{le="+Inf"} 2
took_seconds_sum 0.5
took_seconds_count 2

bare NaN
"""


def test_parses_labels_escapes_timestamps_and_types() -> None:
    scrape = parse(TEXT)
    assert scrape.total("requests_total") == 7.5
    assert scrape.total("requests_total", path="/b") == 4.5
    assert scrape.labels("note") == {'quote " backslash \\ newline \n'}
    assert scrape.total("absent") is None
    assert math.isnan(scrape.samples["bare"][()])
    assert [
        scrape.counts_up(name) for name in ("requests_total", "waiting", "took_seconds_count", "took_seconds_sum")
    ] == [
        True,
        False,
        True,
        False,
    ]


@pytest.mark.parametrize(
    "line", ['{a="b"} 1', "name", "name x", 'name{a="b} 1', "name{a=b} 1", "1name 2", "name 1 2 3"]
)
def test_what_is_no_sample_is_an_error_with_its_line(line: str) -> None:
    with pytest.raises(PromTextError, match="line 2"):
        parse(f"fine 1\n{line}\n")


@given(st.text(max_size=300))
def test_any_text_parses_or_says_why(text: str) -> None:
    try:
        said = str(parse(text))
    except PromTextError as error:
        said = str(error)
    assert said.startswith(("Scrape(", "line "))


def counter(name: str, **series: float) -> Scrape:
    return Scrape({name: {(("replica", key),): value for key, value in series.items()}}, {name: "counter"})


def test_a_series_that_appears_counts_from_zero_and_one_that_is_gone_is_not_known() -> None:
    assert delta(counter("c", a=3), counter("c", a=5, b=4), "c") == 6
    assert delta(counter("c", a=3), Scrape(), "c") is None


def test_backwards_looks_at_every_series_of_counters_only() -> None:
    assert backwards(counter("c", a=3, b=9), counter("c", a=9, b=8)) == ["c"]
    assert backwards(counter("c", a=3), counter("c", a=3)) == []
    gauge = Scrape({"g": {(): 3.0}}, {"g": "gauge"})
    assert backwards(gauge, Scrape({"g": {(): 1.0}}, {"g": "gauge"})) == []


def test_the_newer_name_counts_and_never_the_sum_of_both() -> None:
    both = Growth({"vllm:prefix_cache_hits": [({}, 10.0)], "vllm:gpu_prefix_cache_hits": [({}, 10.0)]})
    assert both.any_of(counters.HITS) == 10
    assert Growth({"vllm:gpu_prefix_cache_hits": [({}, 7.0)]}).any_of(counters.HITS) == 7
    assert Growth().any_of(counters.HITS) is None


def test_one_counter_under_two_names_in_one_scrape_counts_once() -> None:
    after = parse("# TYPE hits_total counter\nhits_total 5\n# TYPE hits counter\nhits 5\n")
    assert growth(Scrape(), after).total("hits") == 5


def test_cached_by_source_is_all_that_was_not_computed_here() -> None:
    sources = [
        ({"source": "local_cache_hit"}, 30.0),
        ({"source": "external_kv_transfer"}, 5.0),
        ({"source": "local_compute"}, 65.0),
    ]
    assert counters.engine_cached(Growth({counters.BY_SOURCE: sources})) == 35


def test_a_sum_over_replicas_needs_every_replica() -> None:
    assert counters.summed([1.0, 2.0]) == 3
    assert counters.summed([1.0, None]) is None
    assert counters.summed([]) is None

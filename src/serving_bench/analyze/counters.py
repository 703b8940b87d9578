"""What counters of an endpoint grew by, and what engines call the ones that matter."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from serving_bench.analyze.promtext import Scrape, delta, finite_sum

Series = tuple[Mapping[str, str], float]


@dataclass(frozen=True)
class Growth:
    """Growth of each counter of one endpoint over a window; names without ``_total``."""

    series: Mapping[str, Sequence[Series]] = field(default_factory=dict)

    def total(self, name: str, **labels: str) -> float | None:
        """Growth summed over the series that carry the labels; null where there is none."""
        return finite_sum(value for own, value in self.series.get(name, ()) if labels.items() <= own.items())

    def any_of(self, aliases: Iterable[str]) -> float | None:
        """Growth under the first name that is there: aliases stand newest first, and never add up."""
        return next((value for alias in aliases if (value := self.total(alias)) is not None), None)


def growth(before: Scrape, after: Scrape) -> Growth:
    """Growth between two own scrapes of an endpoint."""
    series: dict[str, list[Series]] = {}
    for name, samples in after.samples.items():
        plain = name.removesuffix("_total")
        if plain == name and f"{name}_total" in after.samples:
            continue  # one counter under both its names
        if after.counts_up(name) or name.endswith("_sum"):
            grown = ((dict(key), delta(before, after, name, **dict(key))) for key in samples)
            series[plain] = [(labels, math.nan if value is None else value) for labels, value in grown]
    return Growth(series)


HITS = ("vllm:prefix_cache_hits", "vllm:gpu_prefix_cache_hits")
QUERIES = ("vllm:prefix_cache_queries", "vllm:gpu_prefix_cache_queries")
CACHED = ("vllm:prompt_tokens_cached", "sglang:cached_tokens", *HITS)
PROMPT = ("vllm:prompt_tokens", "sglang:prompt_tokens", *QUERIES)
BY_SOURCE = "vllm:prompt_tokens_by_source"
COMPUTED_SOURCE = "local_compute"
FRONTEND_CACHED = ("dynamo_frontend_cached_tokens_sum",)
FRONTEND_PROMPT = ("dynamo_frontend_input_sequence_tokens_sum",)
SERVED = "dynamo_component_requests"
SERVED_ALIASES = ("vllm:request_prompt_tokens_count", "vllm:request_success", "sglang:num_requests")


def cached_by_source(one: Growth) -> float | None:
    """Prompt tokens that came from a cache, local or transferred, by the engine's own sources."""
    known = one.series.get(BY_SOURCE)
    if not known:
        return None
    return finite_sum(value for labels, value in known if labels.get("source") != COMPUTED_SOURCE)


def served_requests(one: Growth) -> float | None:
    """Requests that a replica served."""
    served = one.total(SERVED, dynamo_endpoint="generate")
    return one.any_of(SERVED_ALIASES) if served is None else served


def engine_cached(one: Growth) -> float | None:
    """Prompt tokens that a replica took from cache."""
    by_source = cached_by_source(one)
    return one.any_of(CACHED) if by_source is None else by_source


def summed(values: Iterable[float | None]) -> float | None:
    """Sum over replicas; null as soon as one of them is not known."""
    known = list(values)
    if not known or any(value is None for value in known):
        return None
    return finite_sum(value for value in known if value is not None)

"""How numbers are written in every view: the same digits everywhere."""

from __future__ import annotations

from serving_bench.report_contract import Distribution, Point, Replica, Run, SloCheck

NONE = "-"
"""What stands for a number that is not known."""


def ms(value: float | None) -> str:
    """Milliseconds with about three significant digits, without the unit."""
    if value is None:
        return NONE
    if abs(value) < 0.005:  # noqa: PLR2004  rounding noise, and no minus zero
        return "0.00"
    if abs(value) < 10:  # noqa: PLR2004
        return f"{value:.2f}"
    return f"{value:.1f}" if abs(value) < 1000 else f"{value:,.0f}"  # noqa: PLR2004


def share(value: float | None) -> str:
    return NONE if value is None else f"{value:.1%}"


def count(value: int | None) -> str:
    return NONE if value is None else f"{value:,}"


def rate(value: float | None) -> str:
    return NONE if value is None else f"{value:.1f}"


def interval(pair: tuple[float, float] | None) -> str:
    return "" if pair is None else f"{ms(pair[0])} to {ms(pair[1])}"


def percentile(one: Distribution, name: str) -> str:
    """A percentile, with ``*`` where fewer than ten samples lie beyond it."""
    return ms(getattr(one, name)) + ("*" if name in one.marks else "")


def point_name(point: Point) -> str:
    """As the run directory names it: ``c4``, ``c4-r1``; ``c?`` where no concurrency is known."""
    return f"c{point.conc or '?'}" + (f"-r{point.repeat}" if point.repeat else "")


def conc(point: Point) -> str:
    """In words: ``conc 4``, ``conc 4, repeat 1``."""
    return f"conc {point.conc or '?'}" + (f", repeat {point.repeat}" if point.repeat else "")


def cached_share(point: Point) -> float | None:
    """The cached share of the first witness that has one: what each request's own answer says comes first."""
    cache = point.cache
    for found in (
        cache.responses_cached_share,
        cache.trace_cached_share,
        cache.frontend_cached_share,
        cache.engine_cached_share,
    ):
        if found is not None:
            return found
    return None


_LISTED_REPLICAS = 3


def per_replica(replicas: tuple[Replica, ...]) -> str:
    """Requests of each replica in order (``166/97``), of many their range."""
    counts = [one.requests for one in replicas if one.requests is not None]
    if not counts or len(counts) < len(replicas):
        return NONE
    if len(counts) > _LISTED_REPLICAS:
        return f"{min(counts)}..{max(counts)}"
    return "/".join(str(one) for one in counts)


def objective(check: SloCheck) -> str:
    """``ttft-p95-ms 66.9 ≤ 100: met``."""
    error = check.name == "error-rate"
    measured, limit = (share(value) if error else ms(value) for value in (check.measured, check.limit))
    verdict = {True: "met", False: "missed", None: "not known"}[check.met]
    relation = ">" if check.met is False else "≤"
    return f"{check.name} {measured} {relation} {limit}: {verdict}"


def objectives(point: Point) -> str:
    """All objectives in a word."""
    if not point.slo:
        return NONE
    if any(check.met is False for check in point.slo):
        return "missed"
    return "met" if all(check.met for check in point.slo) else "not known"


def overridden(run: Run) -> str | None:
    """What the command line had set instead of the config: ``overridden: conc 2, repeats 3``."""
    found = ", ".join(f"{name} {value}" for name, value in run.overrides.items())
    return f"overridden: {found}" if found else None

"""``report.json``: what analyze says about one or more runs.

Times are milliseconds, shares lie between 0 and 1. A number that is not known
is null, and ``notes`` of the point says why under the field's dotted path.
Every view (summary, comment, HTML) is rendered from this alone.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

from pydantic import Field

from serving_bench.contracts import Contract

REPORT_VERSION: Literal[1] = 1


class Verdict(StrEnum):
    """Can the numbers of a point be believed?"""

    VALID = "VALID"
    DEGRADED = "DEGRADED"
    INVALID = "INVALID"


class ReportOutcome(StrEnum):
    """What the report as a whole says."""

    INVALID = "INVALID"
    REGRESSED = "REGRESSED"
    IMPROVED = "IMPROVED"
    UNCHANGED = "UNCHANGED"
    INCONCLUSIVE = "INCONCLUSIVE"
    NO_BASELINE = "NO_BASELINE"


class Reason(Contract):
    """Why a point is not simply VALID; ``level`` is what this reason alone would make it."""

    code: str
    message: str
    level: Verdict


class Validity(Contract):
    verdict: Verdict
    reasons: tuple[Reason, ...] = ()
    checked: tuple[str, ...] = ()
    """Codes of the checks that ran."""
    unchecked: dict[str, str] = Field(default_factory=dict)
    """Codes of the checks that had nothing to look at, with the reason."""


class Requests(Contract):
    total: int
    """Profiling requests with a record, failed and cancelled ones included."""
    errors: int
    cancelled: int
    warmup: int = 0
    """Warm-up requests: counted here and in no other number."""
    per_s: float | None = None
    """Completed requests per second of the profiling window."""
    window_s: float | None = None


class Distribution(Contract):
    """A latency in ms over pooled requests; percentiles by linear interpolation."""

    n: int
    mean: float | None = None
    p50: float | None = None
    p90: float | None = None
    p95: float | None = None
    p99: float | None = None
    max: float | None = None
    p50_ci: tuple[float, float] | None = None
    p95_ci: tuple[float, float] | None = None
    marks: tuple[str, ...] = ()
    """Percentiles with fewer than 10 samples beyond them, such as ``p95``."""


class ByTurn(Contract):
    """The same distribution over all turns, first turns of a room, and later turns."""

    all: Distribution
    first: Distribution
    later: Distribution


class Misses(Contract):
    """Shares of all prompt tokens that were not read from cache, by cause."""

    new: float | None = None
    """No replica had computed the block before."""
    elsewhere: float | None = None
    """Only another replica had: the price of routing."""
    evicted: float | None = None
    """This replica had and did not reuse it: the price of capacity or retention."""
    partial: float | None = None
    """The tail that is shorter than a block, or that the engine always computes."""


class PromptShares(Contract):
    """What became of the prompt tokens of some requests; the five shares add up to 1."""

    n: int = 0
    prompt_tokens: int | None = None
    cached: float | None = None
    new: float | None = None
    elsewhere: float | None = None
    evicted: float | None = None
    partial: float | None = None


class PromptSharesByTurn(Contract):
    all: PromptShares = PromptShares()
    first: PromptShares = PromptShares()
    later: PromptShares = PromptShares()


class Witness(Contract):
    """One source's account of cached prompt tokens."""

    name: str
    """``engine``, ``frontend``, ``responses`` or ``trace``."""
    cached_tokens: int | None = None
    prompt_tokens: int | None = None
    share: float | None = None
    note: str = ""


class Cache(Contract):
    engine_hit_rate: float | None = None
    """Prefix-cache hits ÷ queries of the engines' own counters."""
    engine_cached_share: float | None = None
    responses_cached_share: float | None = None
    frontend_cached_share: float | None = None
    trace_cached_share: float | None = None
    trace_reusable_share: float | None = None
    misses: Misses = Misses()
    by_turn: PromptSharesByTurn = PromptSharesByTurn()
    """The same as ``misses`` with the cached share, by turn class, from the request trace."""
    witnesses: tuple[Witness, ...] = ()
    spread: float | None = None
    """Largest minus smallest cached share over the witnesses that have one."""


class Part(Contract):
    p50: float | None = None
    p95: float | None = None
    mean: float | None = None
    """Means add up over the parts; percentiles do not."""


class Anatomy(Contract):
    """TTFT as the client saw it, in parts (ms)."""

    n: int = 0
    client: Part = Part()
    queue: Part = Part()
    prefill: Part = Part()
    rest: Part = Part()
    negative: int = 0
    """Requests with a negative part: parts are measured by different clocks' readings."""


class AnatomyByTurn(Contract):
    all: Anatomy = Anatomy()
    first: Anatomy = Anatomy()
    later: Anatomy = Anatomy()


class Replica(Contract):
    index: int
    endpoint: str
    requests: int | None = None
    prompt_tokens: int | None = None
    cached_tokens: int | None = None


class SloCheck(Contract):
    """One objective against what was measured; ``met`` is null where it cannot be said."""

    name: str
    limit: float
    measured: float | None = None
    met: bool | None = None


class Point(Contract):
    conc: int
    """0 where a bare artifact directory names none."""
    repeat: int = 0
    validity: Validity
    requests: Requests
    ttft_ms: ByTurn
    itl_ms: Distribution
    e2e_ms: Distribution
    cache: Cache
    anatomy_ms: AnatomyByTurn = AnatomyByTurn()
    replicas: tuple[Replica, ...] = ()
    imbalance: float | None = None
    """Requests of the busiest replica ÷ the mean over all replicas; 1 is even."""
    sessions_moved: int | None = None
    """Conversations whose requests went to more than one replica."""
    joined_share: float | None = None
    """Share of completed profiling records found in the request trace."""
    slo: tuple[SloCheck, ...] = ()
    errors: dict[str, int] = Field(default_factory=dict)
    """Failed profiling requests by kind of error."""
    oddities: dict[str, int] = Field(default_factory=dict)
    """What was tolerated while reading the point's files, with counts."""
    notes: dict[str, str] = Field(default_factory=dict)


class Run(Contract):
    kind: Literal["run", "artifacts"] = "run"
    """``artifacts``: a bare aiperf artifact directory, without plan and status."""
    config: str
    cluster: str
    description: str = ""
    comparability: str | None = None
    workload: str | None = None
    source: str
    """The directory that was analyzed, as it was given."""
    outcome: str | None = None
    stage: str | None = None
    """The stage in which the run ended, where it did not pass."""
    code: str | None = None
    message: str = ""
    evidence: tuple[str, ...] = ()
    """Last lines of the log that explains a failure."""
    engine: str | None = None
    router: str | None = None
    commands: dict[str, str] = Field(default_factory=dict)
    """``serve`` and ``router`` → the command as the plan has it, behind its variables, as a shell would read it."""
    image: str | None = None
    model: str | None = None
    scenario: str | None = None
    cache_state: str | None = None
    """What the plan says the prefix cache holds when a point starts."""
    versions: dict[str, str] = Field(default_factory=dict)
    """Package → version, as the run's environment.json has them."""
    overrides: dict[str, str] = Field(default_factory=dict)
    """Flag → value of what the command line had set instead of the config."""
    replicas: int | None = None
    gpus: int | None = None
    points: tuple[Point, ...]
    notes: tuple[str, ...] = ()


class ReportVerdict(Contract):
    outcome: ReportOutcome
    primary: str = "ttft_ms.all.p95"
    effect: float | None = None
    interval: tuple[float, float] | None = None
    message: str = ""


class Report(Contract):
    schema_version: Literal[1] = REPORT_VERSION
    tool_version: str
    runs: tuple[Run, ...]
    comparison: None = None
    verdict: ReportVerdict

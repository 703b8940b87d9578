"""One streaming pass over aiperf's ``profile_export.jsonl`` into columns.

Only the fields that the report uses are decoded. What cannot be read is
counted, never skipped in silence: ``Oddities`` says how many lines were cut,
unreadable or overlong, and how often a metric was missing.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, BinaryIO

import msgspec
import numpy as np

from serving_bench.analyze.arrays import Bools, Floats, Ints

LINE_LIMIT = 16 * 1024 * 1024
"""Bytes of the longest line that is decoded; a longer one is counted and skipped."""

PROFILING = "profiling"
_MS_PER = {"ms": 1.0, "s": 1000.0, "sec": 1000.0, "us": 1e-3, "ns": 1e-6}
_NAN = float("nan")


# Bounds of what can be: a value beyond them was not measured, and sums of values within them stay finite.
_Amount = Annotated[float, msgspec.Meta(ge=0, le=1e15)]
_Nanoseconds = Annotated[int, msgspec.Meta(ge=0, le=2**62)]
_Turn = Annotated[int, msgspec.Meta(ge=0, le=1_000_000)]


class _Metric(msgspec.Struct):
    value: _Amount | None = None
    unit: str = "ms"


class _Metadata(msgspec.Struct):
    request_start_ns: _Nanoseconds
    request_end_ns: _Nanoseconds
    x_request_id: str | None = None
    x_correlation_id: str | None = None
    conversation_id: str | None = None
    turn_index: _Turn | None = None
    credit_issued_ns: _Nanoseconds | None = None
    benchmark_phase: str = PROFILING
    was_cancelled: bool = False


class _Metrics(msgspec.Struct):
    time_to_first_token: _Metric | None = None
    inter_token_latency: _Metric | None = None
    request_latency: _Metric | None = None
    usage_prompt_tokens: _Metric | None = None
    usage_prompt_cache_read_tokens: _Metric | None = None


class _Record(msgspec.Struct):
    metadata: _Metadata
    metrics: _Metrics = msgspec.field(default_factory=_Metrics)
    error: Any = None


@dataclass(frozen=True)
class Records:
    """Requests as columns of equal length; a value that is not known is NaN (-1 for credit_ns)."""

    start_ns: Ints
    end_ns: Ints
    credit_ns: Ints
    turn_index: Ints
    ttft_ms: Floats
    itl_ms: Floats
    latency_ms: Floats
    prompt_tokens: Floats
    cached_tokens: Floats
    failed: Bools
    cancelled: Bools
    request_id: list[str]
    correlation: list[str]
    conversation: list[str]

    @property
    def n(self) -> int:
        return len(self.start_ns)

    @property
    def completed(self) -> Bools:
        """Neither failed nor cancelled: the only requests whose latencies count."""
        return ~(self.failed | self.cancelled)


@dataclass(frozen=True)
class RecordSet:
    """What a records file holds: profiling and all other phases apart."""

    profiling: Records
    warmup: Records
    oddities: dict[str, int]
    """What was tolerated, by kind, with counts."""
    errors: dict[str, int]
    """Failed profiling requests by kind of error."""
    present: bool = True
    """False where there is no file."""

    @property
    def damaged(self) -> int:
        """Lines that hold a record nobody can read."""
        return sum(self.oddities.get(kind, 0) for kind in DAMAGE)


DAMAGE = ("cut line", "unreadable line", "impossible line", "repeated line", "overlong line")


@dataclass
class _Columns:
    start_ns: array[int] = field(default_factory=lambda: array("q"))
    end_ns: array[int] = field(default_factory=lambda: array("q"))
    credit_ns: array[int] = field(default_factory=lambda: array("q"))
    turn_index: array[int] = field(default_factory=lambda: array("q"))
    ttft_ms: array[float] = field(default_factory=lambda: array("d"))
    itl_ms: array[float] = field(default_factory=lambda: array("d"))
    latency_ms: array[float] = field(default_factory=lambda: array("d"))
    prompt_tokens: array[float] = field(default_factory=lambda: array("d"))
    cached_tokens: array[float] = field(default_factory=lambda: array("d"))
    failed: array[int] = field(default_factory=lambda: array("b"))
    cancelled: array[int] = field(default_factory=lambda: array("b"))
    request_id: list[str] = field(default_factory=list)
    correlation: list[str] = field(default_factory=list)
    conversation: list[str] = field(default_factory=list)

    def add(self, record: _Record) -> None:
        meta, metrics = record.metadata, record.metrics
        self.start_ns.append(meta.request_start_ns)
        self.end_ns.append(meta.request_end_ns)
        self.credit_ns.append(-1 if meta.credit_issued_ns is None else meta.credit_issued_ns)
        self.turn_index.append(meta.turn_index or 0)
        self.ttft_ms.append(_milliseconds(metrics.time_to_first_token))
        self.itl_ms.append(_milliseconds(metrics.inter_token_latency))
        self.latency_ms.append(_milliseconds(metrics.request_latency))
        self.prompt_tokens.append(_plain(metrics.usage_prompt_tokens))
        prompt, cached = _plain(metrics.usage_prompt_tokens), _plain(metrics.usage_prompt_cache_read_tokens)
        self.cached_tokens.append(_NAN if cached > prompt else cached)  # more than all cannot be: not known
        self.failed.append(record.error is not None)
        self.cancelled.append(meta.was_cancelled)
        self.request_id.append(meta.x_request_id or "")
        # One replay of a conversation; a request outside any conversation stands for itself.
        self.correlation.append(meta.x_correlation_id or meta.x_request_id or f"#{len(self.correlation)}")
        self.conversation.append(meta.conversation_id or "")

    def freeze(self) -> Records:
        return Records(
            start_ns=np.array(self.start_ns, dtype=np.int64),
            end_ns=np.array(self.end_ns, dtype=np.int64),
            credit_ns=np.array(self.credit_ns, dtype=np.int64),
            turn_index=np.array(self.turn_index, dtype=np.int64),
            ttft_ms=np.array(self.ttft_ms, dtype=np.float64),
            itl_ms=np.array(self.itl_ms, dtype=np.float64),
            latency_ms=np.array(self.latency_ms, dtype=np.float64),
            prompt_tokens=np.array(self.prompt_tokens, dtype=np.float64),
            cached_tokens=np.array(self.cached_tokens, dtype=np.float64),
            failed=np.array(self.failed, dtype=np.bool_),
            cancelled=np.array(self.cancelled, dtype=np.bool_),
            request_id=self.request_id,
            correlation=self.correlation,
            conversation=self.conversation,
        )


def _milliseconds(metric: _Metric | None) -> float:
    if metric is None or metric.value is None:
        return _NAN
    return metric.value * _MS_PER.get(metric.unit, _NAN)


def _plain(metric: _Metric | None) -> float:
    return _NAN if metric is None or metric.value is None else metric.value


def read_lines(source: BinaryIO, oddities: Counter[str], overlong: str) -> Iterator[tuple[bytes, bool]]:
    """Lines with whether they end in a newline; overlong ones are passed over in pieces and counted."""
    while line := source.readline(LINE_LIMIT):
        whole = line.endswith(b"\n")
        if len(line) == LINE_LIMIT and not whole:
            oddities[overlong] += 1
            while (piece := source.readline(LINE_LIMIT)) and not piece.endswith(b"\n"):
                pass
            continue
        yield line, whole


def _error_kind(error: Any) -> str:
    """A short, stable name of a record's error, such as ``503 Service Unavailable``."""
    if not isinstance(error, dict):
        return str(error)[:80]
    parts = [str(error[key]) for key in ("code", "type") if error.get(key) not in (None, "")]
    return " ".join(parts)[:80] or "unnamed error"


def _collect(source: BinaryIO) -> RecordSet:
    decode = msgspec.json.Decoder(_Record).decode
    oddities: Counter[str] = Counter()
    errors: Counter[str] = Counter()
    profiling, warmup = _Columns(), _Columns()
    seen: set[str] = set()
    for line, whole in read_lines(source, oddities, "overlong line"):
        if line.isspace():
            continue
        try:
            record = decode(line)
        except msgspec.ValidationError:
            oddities["impossible line"] += 1
            continue
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            oddities["unreadable line" if whole else "cut line"] += 1
            continue
        if problem := _impossible(record, seen):
            oddities[problem] += 1
            continue
        if record.metadata.benchmark_phase != PROFILING:
            warmup.add(record)
            continue
        profiling.add(record)
        if record.error is not None:
            errors[_error_kind(record.error)] += 1
    frozen = profiling.freeze()
    return RecordSet(frozen, warmup.freeze(), dict(oddities + _missing(frozen)), dict(errors))


def _impossible(record: _Record, seen: set[str]) -> str | None:
    """What is wrong with a record that can be read; ``seen`` are the ids of those before it."""
    meta = record.metadata
    if meta.request_end_ns < meta.request_start_ns:
        return "impossible line"
    if meta.x_request_id:
        if meta.x_request_id in seen:
            return "repeated line"
        seen.add(meta.x_request_id)
    return None


def _missing(records: Records) -> Counter[str]:
    """How many completed requests lack a metric that the report uses."""
    columns = {
        "record without TTFT": records.ttft_ms,
        "record without request latency": records.latency_ms,
        "record without prompt tokens": records.prompt_tokens,
        "record without cached tokens": records.cached_tokens,
    }
    return Counter({name: int(np.isnan(column[records.completed]).sum()) for name, column in columns.items()})


def read_records(path: Path) -> RecordSet:
    """Read a records file; a missing one gives no records and ``present`` false.

    Raises ``OSError`` where the file is there and cannot be read.
    """
    if not path.is_file():
        empty = _Columns().freeze()
        return RecordSet(empty, empty, {}, {}, present=False)
    with path.open("rb") as source:
        return _collect(source)

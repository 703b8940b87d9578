"""aiperf's own account of a run: its summary, its phase manifest and its server metrics.

All of these may be missing or broken where a run failed. That is no error
here: each is null then, and ``troubles`` says what was found.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from serving_bench.analyze.counters import Growth, Series
from serving_bench.analyze.records import PROFILING, RecordSet, read_records
from serving_bench.contracts import MAX_CONC

RECORDS = "profile_export.jsonl"
SUMMARY = "profile_export_aiperf.json"
MANIFEST = "phase_manifest.json"
SERVER_METRICS = "server_metrics_export.json"
MARKERS = (RECORDS, SUMMARY, MANIFEST)
"""Any one of these makes a directory an aiperf artifact directory."""

_CLI_CONCURRENCY = re.compile(r"--concurrency[ =]'?([0-9]{1,7})(?![0-9])")
_PARTS = {"total": "", "count": "_count", "sum": "_sum"}

T = TypeVar("T")


class Stat(msgspec.Struct):
    """A metric of the summary."""

    unit: str = ""
    avg: float | None = None
    p50: float | None = None
    p90: float | None = None
    p95: float | None = None
    p99: float | None = None


class Summary(msgspec.Struct):
    aiperf_version: str | None = None
    request_count: Stat | None = None
    error_request_count: Stat | None = None
    time_to_first_token: Stat | None = None
    was_cancelled: bool | None = None
    is_complete: bool | None = None
    input_config: Any = None
    run_info: Any = None


class Phase(msgspec.Struct):
    phase_kind: str = ""
    total_request_count: int | None = None
    was_cancelled: bool = False


class _Manifest(msgspec.Struct):
    phases: list[Phase] = []


class _ServerSeries(msgspec.Struct):
    endpoint_url: str = ""
    labels: dict[str, str] | None = None
    stats: dict[str, Any] | None = None


class _ServerMetric(msgspec.Struct):
    series: list[_ServerSeries] = []


class _ServerMetrics(msgspec.Struct):
    metrics: dict[str, _ServerMetric] = {}


@dataclass(frozen=True)
class Artifacts:
    """What one aiperf run left behind."""

    records: RecordSet
    summary: Summary | None = None
    phase: Phase | None = None
    """The profiling phase of the manifest."""
    endpoints: Mapping[str, Growth] = field(default_factory=dict)
    """Metrics URL without ``/metrics`` → growth over the profiling phase, as aiperf scraped it."""
    troubles: tuple[str, ...] = ()

    @property
    def concurrency(self) -> int | None:
        return None if self.summary is None else _concurrency(self.summary)


def _load(path: Path, kind: type[T], troubles: list[str]) -> T | None:
    """Decode a JSON file; null, with a line in ``troubles``, where it is broken."""
    if not path.is_file():
        return None
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, OSError) as error:
        troubles.append(f"{path.name} cannot be read: {error}")
        return None


def _dig(value: Any, *keys: str) -> Any:
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _concurrency(summary: Summary) -> int | None:
    """Concurrency of the profiling phase as aiperf was told, in any of the forms its versions write."""
    phases = _dig(summary.input_config, "phases")
    for phase in phases if isinstance(phases, list) else []:
        if _dig(phase, "kind") == PROFILING and _is_concurrency(_dig(phase, "concurrency")):
            return int(phase["concurrency"])
    flat = _dig(summary.input_config, "loadgen", "concurrency")
    if _is_concurrency(flat):
        return int(flat)
    command = _dig(summary.run_info, "cli_command") or _dig(summary.input_config, "cli_command")
    found = _CLI_CONCURRENCY.search(command) if isinstance(command, str) else None
    return int(found[1]) if found and _is_concurrency(int(found[1])) else None


def _is_concurrency(value: Any) -> bool:
    return type(value) is int and 1 <= value <= MAX_CONC


def _growths(metrics: _ServerMetrics) -> dict[str, Growth]:
    """Per endpoint what its counters and histograms grew by."""
    endpoints: dict[str, dict[str, list[Series]]] = {}
    for name, metric in metrics.metrics.items():
        for series in metric.series:
            own = endpoints.setdefault(series.endpoint_url.removesuffix("/metrics"), {})
            for part, suffix in _PARTS.items():
                value = (series.stats or {}).get(part)
                if isinstance(value, int | float):
                    own.setdefault(f"{name}{suffix}", []).append((series.labels or {}, float(value)))
    return {url: Growth(series) for url, series in endpoints.items()}


def load_artifacts(folder: Path) -> Artifacts:
    """Read an aiperf artifact directory, as far as it can be read."""
    troubles: list[str] = []
    manifest = _load(folder / MANIFEST, _Manifest, troubles)
    metrics = _load(folder / SERVER_METRICS, _ServerMetrics, troubles)
    phases = [phase for phase in manifest.phases if phase.phase_kind == PROFILING] if manifest else []
    return Artifacts(
        records=read_records(folder / RECORDS),
        summary=_load(folder / SUMMARY, Summary, troubles),
        phase=phases[0] if len(phases) == 1 else None,
        endpoints=_growths(metrics) if metrics else {},
        troubles=tuple(troubles),
    )

"""Reading Dynamo's request trace (``dynamo.request.trace.v1``, gzipped JSON lines).

A run may start its deployment several times; the files of one start share the
part of their name before the first dot (``start0.000000.jsonl.gz``) and hold
its requests in the order in which they ended.
"""

from __future__ import annotations

import gzip
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, BinaryIO, cast

import msgspec
import numpy as np

from serving_bench.analyze.arrays import Hashes
from serving_bench.analyze.records import read_lines

_NO_HASHES: Hashes = np.empty(0, dtype=np.uint64)


_Tokens = Annotated[int, msgspec.Meta(ge=0, le=2**40)]
_Milliseconds = Annotated[float, msgspec.Meta(ge=-1e15, le=1e15)]


class _Worker(msgspec.Struct):
    prefill_worker_id: int | None = None
    decode_worker_id: int | None = None


class _Replay(msgspec.Struct):
    trace_block_size: _Tokens = 0
    input_sequence_hashes: list[int] = []


class _Request(msgspec.Struct):
    x_request_id: str | None = None
    input_tokens: _Tokens | None = None
    cached_tokens: _Tokens | None = None
    request_received_ms: _Milliseconds | None = None
    prefill_wait_time_ms: _Milliseconds | None = None
    prefill_time_ms: _Milliseconds | None = None
    ttft_ms: _Milliseconds | None = None
    worker: _Worker | None = None
    replay: _Replay | None = None


class _Event(msgspec.Struct):
    event_type: str = ""
    event_time_unix_ms: _Milliseconds | None = None
    request: _Request | None = None


class _Line(msgspec.Struct):
    event: _Event | None = None


@dataclass(frozen=True, slots=True)
class Traced:
    """One ended request as the router saw it; null where the trace does not say."""

    request_id: str
    start: int
    """Which start of the deployment it belongs to: index into ``Trace.starts``."""
    worker: int | None
    """Worker whose cache the prompt met: the one that prefilled."""
    input_tokens: int
    cached_tokens: int | None
    received_ms: float | None
    ended_ms: float | None
    queue_ms: float | None
    prefill_ms: float | None
    ttft_ms: float | None
    block_size: int
    hashes: Hashes
    """Sequence hashes of the prompt's blocks: each stands for the whole prefix up to its block."""


@dataclass(frozen=True)
class Trace:
    """All requests of a run's trace, start after start."""

    requests: Sequence[Traced] = ()
    starts: tuple[str, ...] = ()
    oddities: dict[str, int] | None = None


def _traced(event: _Event, start: int) -> Traced | None:
    request = event.request
    if event.event_type != "request_end" or request is None or request.input_tokens is None:
        return None
    worker = request.worker or _Worker()
    replay = request.replay or _Replay()
    prefill = worker.prefill_worker_id
    return Traced(
        request_id=request.x_request_id or "",
        start=start,
        worker=worker.decode_worker_id if prefill is None else prefill,
        input_tokens=request.input_tokens,
        cached_tokens=request.cached_tokens,
        received_ms=request.request_received_ms,
        ended_ms=event.event_time_unix_ms,
        queue_ms=request.prefill_wait_time_ms,
        prefill_ms=request.prefill_time_ms,
        ttft_ms=request.ttft_ms,
        block_size=replay.trace_block_size,
        hashes=np.array(replay.input_sequence_hashes, dtype=np.uint64) if replay.input_sequence_hashes else _NO_HASHES,
    )


def _lines(path: Path, oddities: Counter[str]) -> Iterator[bytes]:
    """Lines of a file, as far as it can be unpacked."""
    opener = gzip.open if path.suffix == ".gz" else Path.open
    try:
        with opener(path, "rb") as source:
            for line, _ in read_lines(cast("BinaryIO", source), oddities, "overlong trace line"):
                yield line
    except (EOFError, gzip.BadGzipFile, zlib.error):
        # The writer was stopped before it closed the file: what came before is good.
        oddities["trace file cut"] += 1
    except OSError:
        oddities["trace file that cannot be read"] += 1


def _read_file(path: Path, start: int, oddities: Counter[str]) -> Iterator[Traced]:
    decode = msgspec.json.Decoder(_Line).decode
    for line in _lines(path, oddities):
        if line.isspace():
            continue
        try:
            event = decode(line).event
            traced = None if event is None else _traced(event, start)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, OverflowError):  # a hash beyond 64 bits
            oddities["unreadable trace line"] += 1
            continue
        if traced is not None:
            yield traced


def read_trace(paths: Iterable[Path]) -> Trace:
    """Read the files of a trace; what cannot be read is counted in ``oddities``."""
    oddities: Counter[str] = Counter()
    starts: dict[str, int] = {}
    requests: list[Traced] = []
    for path in sorted(paths, key=lambda path: path.name):
        start = starts.setdefault(path.name.partition(".")[0], len(starts))
        requests.extend(_read_file(path, start, oddities))
    return Trace(requests, tuple(starts), dict(oddities))


def trace_files(folder: Path) -> list[Path]:
    """The trace files of a run's ``trace`` folder."""
    return [path for path in folder.glob("*.jsonl*") if path.suffix in {".gz", ".jsonl"}]


NO_TRACE = Trace()

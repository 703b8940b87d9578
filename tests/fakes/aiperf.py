"""Stands in for aiperf where a test is about launch and not about load.

Sends two real streaming-less completions through the router, and writes the
three files that launch reads. A request timeout of 13 s makes it hang instead.
"""

from __future__ import annotations

import json
import sys
import time
import urllib.request
from pathlib import Path


def _value(flag: str) -> str:
    return sys.argv[sys.argv.index(flag) + 1]


def _ask(number: int) -> dict[str, object]:
    body = {"model": _value("--model"), "messages": [{"role": "user", "content": f"hello {number}"}], "max_tokens": 2}
    request = urllib.request.Request(
        f"{_value('--url')}/v1/chat/completions", json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=20) as answer:
        answer.read()
    return {"metadata": {"benchmark_phase": "profiling", "session_num": number}, "metrics": {}}


def main() -> None:
    if _value("--request-timeout-seconds") == "13":
        print("waiting for something that never comes", flush=True)
        time.sleep(600)
    folder = Path(_value("--artifact-dir"))
    folder.mkdir(parents=True)
    records = [json.dumps(_ask(number)) for number in range(2)]
    (folder / "profile_export.jsonl").write_text("\n".join(records) + "\n")
    (folder / "profile_export_aiperf.json").write_text(json.dumps({"benchmark_duration": {"avg": 1.0}}))
    phase = {
        "phase_kind": "profiling",
        "total_request_count": 2,
        "successful_request_count": 2,
        "error_request_count": 0,
    }
    (folder / "phase_manifest.json").write_text(json.dumps({"phases": [phase]}))


main()

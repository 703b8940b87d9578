"""The benchmark of render runs, and says what it promises; how fast depends on the machine."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "bench-render"


def test_the_benchmark_prints_seconds_rows_and_memory() -> None:
    command = [sys.executable, str(SCRIPT), "--configs", "40", "--runs", "1"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    lines = done.stdout.splitlines()
    assert lines[0].startswith("40 configs of four points, checked: ")
    assert all(re.search(r": [\d.]+ s \(limit [\d.]+\), .* \d+ rows/s, peak \d+ MiB$", line) for line in lines[:4])

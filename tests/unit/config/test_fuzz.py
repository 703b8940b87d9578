"""A short run of the fuzzer, so that it keeps working; the long one is for maintainers."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]


def test_generated_documents_give_plans_or_coded_errors() -> None:
    command = [sys.executable, str(ROOT / "scripts" / "fuzz-configs"), "--count", "600", "--seed", "2"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1].startswith("600 documents")
    assert " plan\n" in done.stdout

"""Runs the launch step as the command line does: the status decides the exit status.

Arguments: plan, out, root, bench environment.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from serving_bench.contracts import Outcome
from serving_bench.errors import Exit, ServingBenchError
from serving_bench.launch.step import LaunchOptions, failure_lines, run


def main() -> int:
    plan, out, root, bench_env = map(Path, sys.argv[1:5])
    options = LaunchOptions(plan=plan, out=out, root=root, bench_env=bench_env, heartbeat_s=2.0)
    try:
        status = run(options, os.environ, sys.stdout)
    except ServingBenchError as error:
        print("\n".join(error.lines()), file=sys.stderr)
        return error.exit_status
    for line in failure_lines(status):
        print(line, file=sys.stderr)
    if status.signal is not None:
        return 128 + status.signal
    return Exit.DONE if status.outcome is Outcome.PASSED else Exit.FAILED


sys.exit(main())

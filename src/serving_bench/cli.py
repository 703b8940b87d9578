"""The command line: one subcommand per step, the only place that reads the environment and exits.

Known errors end in one or two lines on stderr and their exit status; anything
else is a bug of the toolkit: exit status 3 and a file to paste into an issue.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from serving_bench import __version__, gha
from serving_bench.errors import ConfigError, Exit, InterruptedRunError, ServingBenchError

if TYPE_CHECKING:
    from serving_bench.contracts import RunStatus

Environment = Mapping[str, str]

_MAX_CONC = 1_000_000

_EPILOG = """\
exit status:
  0 done    1 the input or the measured system failed    2 wrong usage
  3 a bug in the toolkit    4 a gate said no    129/130/143 interrupted
"""

_RENDER_EXAMPLES = """\
examples:
  serving-bench render --check
      validate every config and print a line per plan, write nothing
  serving-bench render demo-2rep-dyn-mocker-kv --out out
      write out/plans/*.json and out/matrix.json for one config
"""

_LAUNCH_EXAMPLES = """\
examples:
  serving-bench launch --plan out/plans/demo-2rep-dyn-mocker-kv--hosted-mocker.json --out runs/demo
      start the plan's replicas and router, drive the load, stop everything
  serving-bench launch --plan PLAN --out runs/quick --conc 2
      the same at another concurrency
"""

_ANALYZE_EXAMPLES = """\
examples:
  serving-bench analyze runs/demo --out runs/demo/report
      report.json, summary.md, comment.md and report.html for one run
  serving-bench analyze runs/* --out report --fail-on invalid,slo
      several runs in one report; exit status 4 if a point is invalid or misses its SLO
"""


_FETCH_EXAMPLES = """\
examples:
  serving-bench fetch
      have every locked dataset on disk, checked; afterwards no network is needed
  serving-bench fetch my-calls --cache /mnt/nvme/hf/hub
      one dataset, in another cache than the Hugging Face Hub's own
  serving-bench fetch --update my-calls --repo my-org/my-calls --file calls.jsonl
      lock the current revision of a dataset repository (HF_TOKEN for a private one)
"""


def _positive_list(text: str) -> tuple[int, ...]:
    """``4,8`` → (4, 8); distinct positive whole numbers."""
    try:
        values = tuple(int(part) for part in text.split(","))
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected whole numbers with commas between, found {text!r}") from None
    if not all(0 < value <= _MAX_CONC for value in values) or len(set(values)) != len(values):
        raise argparse.ArgumentTypeError(f"expected distinct positive whole numbers, found {text!r}")
    return values


def _gates(text: str) -> frozenset[str]:
    known = {"invalid", "slo"}
    gates = frozenset(part for part in text.split(",") if part)
    if not gates <= known:
        raise argparse.ArgumentTypeError(f"unknown gate in {text!r}, known: {', '.join(sorted(known))}")
    return gates


def _add_render(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = _command(commands, "render", "validate serving YAMLs and expand them into plans and a matrix")
    parser.epilog = _RENDER_EXAMPLES
    parser.add_argument("names", nargs="*", metavar="NAME", help="configs by name or file; default: all")
    parser.add_argument("--config-dir", type=Path, default=Path("configs"), metavar="DIR", help="default: configs")
    target = parser.add_mutually_exclusive_group()
    target.add_argument("--check", action="store_true", help="validate and print a line per plan; write nothing")
    target.add_argument("--out", type=Path, metavar="DIR", help="where plans/ and matrix.json are written")
    parser.add_argument("--conc", type=_positive_list, metavar="LIST", help="concurrencies instead of the configs' own")
    parser.add_argument("--format", choices=("text", "json"), default="text", help="form of the problems on stdout")
    parser.set_defaults(run=_render, parser=parser)


def _add_launch(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = _command(commands, "launch", "start a plan's replicas and router, drive the load, stop everything")
    parser.epilog = _LAUNCH_EXAMPLES
    parser.add_argument("--plan", type=Path, required=True, metavar="FILE", help="a plan that render wrote")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="the run directory; must not hold a run")
    parser.add_argument(
        "--root", type=Path, default=Path(), metavar="DIR", help="where the plan's relative paths start"
    )
    parser.add_argument(
        "--bench-env",
        type=Path,
        metavar="DIR",
        help="virtual environment with aiperf and the engines; default: $SERVING_BENCH_ENV, else PATH",
    )
    parser.add_argument("--conc", type=_positive_list, metavar="LIST", help="concurrencies instead of the plan's own")
    parser.add_argument(
        "--heartbeat", type=float, default=30.0, metavar="SECONDS", help="between lines while something is waited for"
    )
    parser.set_defaults(run=_launch)


def _add_analyze(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = _command(commands, "analyze", "judge one or more runs and write the report")
    parser.epilog = _ANALYZE_EXAMPLES
    parser.add_argument("paths", nargs="+", type=Path, metavar="PATH", help="run or aiperf artifact directories")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="where the report is written")
    parser.add_argument("--report-only", action="store_true", help="write report.json and no views")
    parser.add_argument("--fail-on", type=_gates, default=frozenset(), metavar="LIST", help="gates: invalid,slo")
    parser.set_defaults(run=_analyze)


def _add_fetch(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = _command(commands, "fetch", "have the locked datasets on disk, checked; or lock what is there now")
    parser.epilog = _FETCH_EXAMPLES
    parser.add_argument("names", nargs="*", metavar="DATASET", help="datasets by their id in the lock; default: all")
    parser.add_argument("--config-dir", type=Path, default=Path("configs"), metavar="DIR", help="default: configs")
    parser.add_argument("--cache", type=Path, metavar="DIR", help="default: the Hugging Face Hub's (HF_HOME)")
    parser.add_argument("--update", metavar="DATASET", help="write the entry anew, from the current revision")
    parser.add_argument("--repo", metavar="NAME", help="with --update: the dataset repository, organisation/name")
    parser.add_argument("--file", metavar="PATH", help="with --update: the file in it")
    parser.set_defaults(run=_fetch, parser=parser)


def _add_schema(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = _command(commands, "schema", "write the JSON Schemas of the YAML files, for editors")
    parser.add_argument(
        "--out", type=Path, default=Path("configs/schema"), metavar="DIR", help="default: configs/schema"
    )
    parser.set_defaults(run=_schema)


def _command(
    commands: argparse._SubParsersAction[argparse.ArgumentParser], name: str, summary: str
) -> argparse.ArgumentParser:
    parser = commands.add_parser(
        name, help=summary, description=summary, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--debug", action="store_true", help="show the traceback of an error")
    return parser


def build_parser() -> argparse.ArgumentParser:
    """The whole command line."""
    parser = argparse.ArgumentParser(
        prog="serving-bench",
        description="Measure what a change to an LLM-serving YAML did to time to first token.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"serving-bench {__version__}")
    commands = parser.add_subparsers(title="steps", required=True, metavar="STEP")
    _add_render(commands)
    _add_launch(commands)
    _add_analyze(commands)
    _add_schema(commands)
    _add_fetch(commands)
    return parser


def _render(args: argparse.Namespace, env: Environment) -> int:
    from serving_bench.render import step

    if not args.check and args.out is None:
        args.parser.error("one of --check and --out is needed")
    options = step.RenderOptions(
        config_dir=args.config_dir,
        names=tuple(args.names),
        out=args.out,
        conc=args.conc,
        json_format=args.format == "json",
    )
    try:
        step.run(options, env, sys.stdout)
    except ConfigError as error:
        if options.json_format:
            print(step.problems_json(error.problems), end="")
        raise
    return Exit.DONE


def _launch(args: argparse.Namespace, env: Environment) -> int:
    from serving_bench.launch import step

    bench_env = args.bench_env or (Path(env["SERVING_BENCH_ENV"]) if env.get("SERVING_BENCH_ENV") else None)
    options = step.LaunchOptions(
        plan=args.plan, out=args.out, root=args.root, bench_env=bench_env, conc=args.conc, heartbeat_s=args.heartbeat
    )
    status = step.run(options, env, sys.stdout)
    gha.set_output(env, "run-path", str(args.out))
    gha.set_output(env, "status", status.outcome.value)
    for line in step.failure_lines(status):
        print(line, file=sys.stderr)
    return _launch_status(status)


def _launch_status(status: RunStatus) -> int:
    """Exit status of a run: interrupted ones say by which signal, as a shell does."""
    from serving_bench.contracts import Outcome

    if status.outcome is Outcome.INTERRUPTED:
        return 128 + (status.signal or signal.SIGINT)
    return Exit.DONE if status.outcome is Outcome.PASSED else Exit.FAILED


def _analyze(args: argparse.Namespace, env: Environment) -> int:
    from serving_bench.analyze import step

    options = step.AnalyzeOptions(
        paths=tuple(args.paths), out=args.out, report_only=args.report_only, fail_on=args.fail_on
    )
    step.run(options, env, sys.stdout)
    return Exit.DONE


def _fetch(args: argparse.Namespace, _env: Environment) -> int:
    from serving_bench.datasets import fetch

    if args.update is None and (args.repo or args.file):
        args.parser.error("--repo and --file go with --update")
    if args.update is not None and args.names:
        args.parser.error("--update takes one dataset, and no others beside it")
    options = fetch.FetchOptions(
        config_dir=args.config_dir,
        names=tuple(args.names),
        cache=args.cache,
        update=args.update,
        repo=args.repo,
        file=args.file,
    )
    fetch.run(options, sys.stdout)
    return Exit.DONE


def _schema(args: argparse.Namespace, _env: Environment) -> int:
    from serving_bench.config.schema import SCHEMAS, schema_of
    from serving_bench.files import dump_json, write_atomic

    for name, kind in SCHEMAS.items():
        write_atomic(args.out / name, dump_json(schema_of(kind)))
        print(args.out / name)
    return Exit.DONE


def _print_traceback(error: BaseException) -> None:
    import traceback

    traceback.print_exception(error)


def _report_bug(error: BaseException) -> Path:
    """Write what an issue needs to a new file; no environment, no arguments' values."""
    import platform
    import tempfile
    import traceback

    text = "".join(traceback.format_exception(error))
    head = f"serving-bench {__version__}, Python {platform.python_version()}, {platform.platform()}\n\n"
    handle, name = tempfile.mkstemp(prefix="serving-bench-bug-", suffix=".txt")
    with os.fdopen(handle, "w", encoding="utf-8") as out:
        out.write(head + text)
    return Path(name)


def _fail(error: ServingBenchError, env: Environment, *, debug: bool) -> int:
    if debug:
        _print_traceback(error)
    for line in error.lines():
        print(line, file=sys.stderr)
    if gha.on_runner(env) and not isinstance(error, ConfigError):
        print(gha.annotation("error", error.message, title=error.code))
    if isinstance(error, InterruptedRunError):
        return 128 + error.signal_number
    return error.exit_status


def _guarded(work: Callable[[], int], env: Environment, *, debug: bool) -> int:
    try:
        return work()
    except ServingBenchError as error:
        return _fail(error, env, debug=debug)
    except KeyboardInterrupt:
        print("interrupted [SB-INTERRUPTED]", file=sys.stderr)
        return Exit.SIGINT
    except BrokenPipeError:
        # The reader of our output has gone (for example `| head`): nothing is left to say it to.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return Exit.FAILED
    except Exception as error:  # noqa: BLE001  the boundary between known errors and bugs
        if debug:
            _print_traceback(error)
        print(f"a bug in serving-bench: {type(error).__name__}: {error} [SB-BUG]", file=sys.stderr)
        print(f"hint: please open an issue with {_report_bug(error)}", file=sys.stderr)
        return Exit.BUG


def run(argv: Sequence[str], env: Environment) -> int:
    """Run a command line; returns the exit status. Wrong usage raises ``SystemExit`` (2)."""
    parser = build_parser()
    args = parser.parse_args(argv)
    work: Callable[[argparse.Namespace, Environment], int] = args.run
    return _guarded(lambda: int(work(args, env)), env, debug=args.debug)


def main() -> None:
    """Entry point of the console script."""
    sys.exit(run(sys.argv[1:], os.environ))

"""The command line: one subcommand per step, the only place that reads the environment and exits.

Known errors end in one or two lines on stderr and their exit status; anything
else is a bug of the toolkit: exit status 3 and a file to paste into an issue.
"""

from __future__ import annotations

import argparse
import gc
import io
import math
import os
import signal
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from serving_bench import __version__, gha
from serving_bench.errors import ConfigError, Exit, InterruptedRunError, ServingBenchError, from_os_error

if TYPE_CHECKING:
    from serving_bench.contracts import RunStatus
    from serving_bench.render.options import RenderOptions

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
  serving-bench render 'gemma4-*' --check --conc 8:256:x2 --duration 300
      what a quick look at some configs would run: c8, c16, … c256, five minutes each
  serving-bench render --check --changed-from origin/main
      what a pull request changes: configs, those that extend them, and those whose scenario, cluster or dataset changed
  serving-bench render --explain demo-2rep-dyn-mocker-kv --conc 2
      every value of a config with the file and line, or the flag, that it comes from
  serving-bench render --out out --changed-from origin/main --labels-from-event --actor-permission write
      on a runner: the same, if the pull request's labels ask for a sweep
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


def _count(text: str) -> int:
    if not text.isdecimal() or not 0 < int(text) <= _MAX_CONC:
        raise argparse.ArgumentTypeError(f"expected a positive whole number, found {text!r}")
    return int(text)


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not (value > 0 and math.isfinite(value)):
        raise argparse.ArgumentTypeError(f"expected a number of seconds above 0, found {text!r}")
    return value


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
    target.add_argument("--check", action="store_true", help="validate and print a line per row; write nothing")
    target.add_argument("--out", type=Path, metavar="DIR", help="where plans/ and matrix.json are written")
    target.add_argument("--explain", metavar="NAME", help="print each value of a config and where it comes from")
    parser.add_argument(
        "--format", choices=("text", "json"), default="text", help="json: problems as JSON on stdout; default: text"
    )
    _add_overrides(parser.add_argument_group("in place of the configs' own values, and recorded in the plans"))
    _add_selection(parser.add_argument_group("which configs", "With NAMEs too, only those of them that qualify."))
    _add_matrix(parser.add_argument_group("rows of the matrix"))
    parser.set_defaults(run=_render, parser=parser)


def _add_overrides(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--conc", metavar="LIST|RANGE", help="such as 4,8 or FROM:TO[:STEP]: 8:64:8, 8:256:x2")
    group.add_argument("--repeats", type=int, metavar="N", help="runs of each point")
    group.add_argument("--duration", type=float, metavar="SECONDS", help="length of the measured phase of each point")
    group.add_argument("--cluster", metavar="LIST", help="clusters, separated by commas")
    group.add_argument("--image", metavar="IMAGE", help="container image of engines and router")


def _add_selection(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--changed-from", metavar="REF", help="those that differ from where HEAD and REF parted")
    group.add_argument("--changelog-from", metavar="REF", help="those named by new entries of perf-changelog.yaml")
    event = group.add_mutually_exclusive_group()
    event.add_argument("--labels-from-event", action="store_true", help="run only what $GITHUB_EVENT_PATH's labels say")
    event.add_argument("--event", type=Path, metavar="FILE", help="the same for an event in a file")
    group.add_argument(
        "--actor-permission",
        choices=("none", "read", "triage", "write", "maintain", "admin"),
        help="what the event's sender may do in the repository; needed for pull requests from forks",
    )


def _add_matrix(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--split", type=_count, metavar="N", help="at most N concurrencies in a row; default: all")
    group.add_argument("--canary", action="store_true", help="the lowest concurrency of the cheapest config apart")
    group.add_argument("--fail-fast", action="store_true", help="the first row that fails ends the others")


def _add_launch(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = _command(commands, "launch", "start a plan's replicas and router, drive the load, stop everything")
    parser.epilog = _LAUNCH_EXAMPLES
    parser.add_argument("--plan", type=Path, required=True, metavar="FILE", help="a plan that render wrote")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="the run directory; new or empty")
    parser.add_argument(
        "--root", type=Path, default=Path(), metavar="DIR", help="where the plan's relative paths start; default: ."
    )
    parser.add_argument(
        "--bench-env",
        type=Path,
        metavar="DIR",
        help="virtual environment with aiperf and the engines; default: $SERVING_BENCH_ENV, else PATH",
    )
    parser.add_argument("--conc", type=_positive_list, metavar="LIST", help="concurrencies instead of the plan's own")
    parser.add_argument(
        "--heartbeat",
        type=_seconds,
        default=30.0,
        metavar="SECONDS",
        help="between lines while something is waited for; default: 30",
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

    options = _render_options(args, env)
    try:
        if args.explain is not None:
            print(step.explanation(args.config_dir, args.explain, options.overrides), end="")
        else:
            step.run(options, env, sys.stdout, sys.stderr)
    except ConfigError as error:
        if options.json_format:
            print(step.problems_json(error.problems), end="")
        raise
    return Exit.DONE


def _render_options(args: argparse.Namespace, env: Environment) -> RenderOptions:
    """Options of the render step; combinations that make no sense are wrong usage."""
    from serving_bench.config.overrides import Overrides
    from serving_bench.render.options import RenderOptions

    if not args.check and args.out is None and args.explain is None:
        args.parser.error("one of --check, --out and --explain is needed")
    if args.explain is not None and (args.names or args.changed_from or args.changelog_from):
        args.parser.error("--explain is about the one config it names")
    return RenderOptions(
        config_dir=args.config_dir,
        names=tuple(args.names),
        out=args.out,
        overrides=Overrides(
            conc=args.conc,
            repeats=args.repeats,
            duration_s=args.duration,
            cluster=tuple(args.cluster.split(",")) if args.cluster is not None else None,
            image=args.image,
        ),
        changed_from=args.changed_from,
        changelog_from=args.changelog_from,
        event=_event_path(args, env),
        event_name=env.get("GITHUB_EVENT_NAME", "") if args.labels_from_event else "",
        permission=args.actor_permission,
        canary=args.canary,
        fail_fast=args.fail_fast,
        split=args.split,
        json_format=args.format == "json",
    )


def _event_path(args: argparse.Namespace, env: Environment) -> Path | None:
    if not args.labels_from_event:
        event: Path | None = args.event
        return event
    if not env.get("GITHUB_EVENT_PATH"):
        args.parser.error(
            "--labels-from-event is for a runner, which sets GITHUB_EVENT_PATH; elsewhere use --event FILE"
        )
    return Path(env["GITHUB_EVENT_PATH"])


def _launch(args: argparse.Namespace, env: Environment) -> int:
    from serving_bench.launch import step

    bench_env = args.bench_env or (Path(env["SERVING_BENCH_ENV"]) if env.get("SERVING_BENCH_ENV") else None)
    options = step.LaunchOptions(
        plan=args.plan, out=args.out, root=args.root, bench_env=bench_env, conc=args.conc, heartbeat_s=args.heartbeat
    )
    status = step.run(options, env, sys.stdout)
    gha.set_output(env, "run-path", str(args.out))
    gha.set_output(env, "status", status.outcome.value)
    _complain(step.failure_lines(status), env)
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


def _complain(lines: Iterable[str], env: Environment) -> None:
    """Lines on stderr, each one line whatever a path or a message in it holds."""
    for line in lines:
        shown = "".join(
            character if character.isprintable() else repr(character)[1:-1] for character in line.expandtabs()
        )
        print(gha.harmless(env, shown), file=sys.stderr)


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
    _complain(error.lines(), env)
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
        _silence_stdout()
        return Exit.FAILED
    except OSError as error:
        return _fail(from_os_error(error), env, debug=debug)
    except Exception as error:  # noqa: BLE001  the boundary between known errors and bugs
        if debug:
            _print_traceback(error)
        first_line = str(error).partition("\n")[0]
        _complain([f"a bug in serving-bench: {type(error).__name__}: {first_line} [SB-BUG]"], env)
        try:
            _complain([f"hint: please open an issue with {_report_bug(error)}"], env)
        except OSError:  # no folder for the file: what it would hold must not be lost
            _print_traceback(error)
        return Exit.BUG


def _silence_stdout() -> None:
    """What is still in the buffer has nowhere to go; the interpreter must not fail over it as it exits."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _flushed(status: int, env: Environment) -> int:
    """The exit status once all output is out. A reader that has gone changes nothing about the work."""
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except BrokenPipeError:
        _silence_stdout()
    except OSError as error:
        _silence_stdout()
        _complain([f"stdout: {error.strerror or error} [SB-OS]"], env)
        return status or Exit.FAILED
    return status


def run(argv: Sequence[str], env: Environment) -> int:
    """Run a command line; returns the exit status. Wrong usage raises ``SystemExit`` (2)."""
    parser = build_parser()
    args = parser.parse_args(argv)
    work: Callable[[argparse.Namespace, Environment], int] = args.run
    return _flushed(_guarded(lambda: int(work(args, env)), env, debug=args.debug), env)


def main() -> None:
    """Entry point of the console script."""
    # Reading many files makes many objects and no circles: looking for circles at the usual pace, every 700 objects,
    # takes a fifth of the time of a check of 1,000 configs.
    gc.set_threshold(100_000)
    for stream in (sys.stdout, sys.stderr):
        # Names and paths hold what a terminal's encoding may not have: an escape is better than no report.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    status = run(sys.argv[1:], os.environ)
    gc.freeze()  # nor is a last look for circles on the way out worth a tenth of a second
    sys.exit(status)

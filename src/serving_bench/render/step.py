"""The render step: validate configs, write plans and the matrix, set the step's outputs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TextIO

from serving_bench import gha
from serving_bench.config.inventory import explain
from serving_bench.config.loader import Loaded, load
from serving_bench.config.overrides import Overrides
from serving_bench.contracts import Plan
from serving_bench.errors import ConfigError, InputError, Problem
from serving_bench.files import dump_json, write_atomic, write_model
from serving_bench.render.estimate import ASSUMPTIONS, estimate
from serving_bench.render.labels import Sweep
from serving_bench.render.matrix import Outputs, check_line, matrix, outputs
from serving_bench.render.options import RenderOptions
from serving_bench.render.rows import Rows, build
from serving_bench.render.selection import Notice, decide_sweep, listed, select
from serving_bench.render.sweep import fast, with_mode

__all__ = ["RenderOptions", "explanation", "problems_json", "run"]


def run(options: RenderOptions, env: Mapping[str, str], out: TextIO, notes: TextIO | None = None) -> Rows:
    """Validate and, unless only checking, write; returns the rows.

    Warnings and notices go to ``notes`` where it is given and they are no
    annotations, so that ``out`` holds a line per row and nothing else.

    Raises ``ConfigError`` with every problem, after they were annotated on a
    runner, and ``InputError`` for what git, the event or GitHub's limits refuse.
    """
    shown = {} if options.json_format else env  # annotations would stand in a program's way
    try:
        sweep = decide_sweep(options, env)
        selection = select(options, env)
        loaded = (
            Loaded((), ()) if selection.names is None else load(options.config_dir, selection.names, options.overrides)
        )
    except ConfigError as error:
        annotate(error.problems, shown, out)
        raise
    annotate(loaded.warnings, shown, out)
    rows, notices = _rows(options, sweep, loaded.plans)
    notices = [*selection.notices, *notices]
    made = _outputs(options, sweep, rows, notices)
    notices += [Notice(code, message) for code, message in made.warnings]
    if not options.json_format:
        _say_notes(loaded.warnings, notices, env, out if gha.on_runner(env) else notes or out)
    if options.out is not None:  # before the rows are told: their reader may go while they are
        _write(rows, options.out)
        _announce(made, rows, notices, env)
    if options.json_format:
        print(problems_json(loaded.warnings, notices), end="", file=out)
    else:
        _say_rows(options, rows, env, out)
    return rows


def _rows(options: RenderOptions, sweep: Sweep, plans: Sequence[Plan]) -> tuple[Rows, list[Notice]]:
    if not sweep.runs:
        return Rows(), [Notice(sweep.code, sweep.message)]
    chosen, without = with_mode(plans, sweep.mode)
    notices = [Notice("SB-SWEEP", sweep.message)] if sweep.message else []
    if without:
        text = f"without evals, and so left out of a sweep of accuracy only: {listed(without)}"
        notices.append(Notice("SB-NO-EVALS", text))
    if sweep.fast:
        return build(chosen, split=1, canary=sweep.canary, fit=fast), notices
    return build(chosen, split=options.split, canary=sweep.canary), notices


def _outputs(options: RenderOptions, sweep: Sweep, rows: Rows, notices: Iterable[Notice]) -> Outputs:
    """The step's outputs; a check of more rows than they hold still says that the configs are right."""
    try:
        return outputs(rows, fail_fast=sweep.fail_fast, extra=_extra(options, sweep, rows, notices))
    except InputError as error:
        if options.out is not None:
            raise
        return Outputs({}, ((error.code, error.message),))


def _extra(options: RenderOptions, sweep: Sweep, rows: Rows, notices: Iterable[Notice]) -> dict[str, str]:
    """Outputs beside the matrix; ``reason`` says why nothing runs."""
    reason = "" if rows.all() else "; ".join(notice.message for notice in notices)[:1000]
    plans_path = str(options.out / "plans") if options.out is not None else ""
    return {"plans-path": plans_path, "head-sha": sweep.head_sha or "", "reason": reason}


def explanation(config_dir: Path, name: str, overrides: Overrides) -> str:
    """A line for each value of a config, with where it comes from."""
    return "".join(f"{item.key}: {item.value}  # {item.source}\n" for item in explain(config_dir, name, overrides))


def problems_json(problems: Sequence[Problem], notices: Sequence[Notice] = ()) -> str:
    """``{"problems": [{path, line, column, key, message, code, severity}], "notices": [{code, message}]}``."""
    return dump_json({"problems": list(map(asdict, problems)), "notices": list(map(asdict, notices))})


def annotate(problems: Sequence[Problem], env: Mapping[str, str], out: TextIO) -> None:
    """Show problems at their lines of the pull request; nothing outside a runner."""
    if gha.on_runner(env):
        for problem in problems:
            print(gha.problem_annotation(problem), file=out)


def _say_notes(warnings: Iterable[Problem], notices: Iterable[Notice], env: Mapping[str, str], out: TextIO) -> None:
    """As annotations on a runner, where the warnings have theirs already; else a line each."""
    if gha.on_runner(env):
        for notice in notices:
            print(gha.annotation(_level(notice), notice.message, title=notice.code), file=out)
        return
    for problem in warnings:
        print(f"warning: {problem.text()}", file=out)
    for notice in notices:
        print(f"{_level(notice)}: {notice.message} [{notice.code}]", file=out)


def _say_rows(options: RenderOptions, rows: Rows, env: Mapping[str, str], out: TextIO) -> None:
    """The lines that ``render --check`` promises, and a last one where something was written."""
    for row in rows.all():
        print(gha.harmless(env, check_line(row.plan)), file=out)
    if options.out is not None:
        print(f"{_count(rows)} in {options.out}, {_about(rows)}", file=out)


def _level(notice: Notice) -> str:
    return "warning" if notice.code.startswith(("SB-MATRIX", "SB-ROW")) else "notice"


def _about(rows: Rows) -> str:
    sums = estimate(row.plan for row in rows.all())
    points = f"{sums.points} point{'' if sums.points == 1 else 's'}"
    return f"{points}, about {sums.gpu_minutes} GPU-minutes ({ASSUMPTIONS})" if sums.gpu_minutes else points


def _count(rows: Rows) -> str:
    return f"{len(rows.all())} row{'' if len(rows.all()) == 1 else 's'}"


def _write(rows: Rows, folder: Path) -> None:
    for row in rows.all():
        write_model(folder / "plans" / f"{row.id}.json", row.plan)
    write_atomic(folder / "matrix.json", dump_json(matrix(rows.rows)))


def _announce(made: Outputs, rows: Rows, notices: Sequence[Notice], env: Mapping[str, str]) -> None:
    """The step's outputs, and its part of the job summary."""
    for name, value in made.values.items():
        gha.set_output(env, name, value)
    lines = [f"**render**: {_count(rows)}, {_about(rows)}", ""]
    lines += [f"- `{notice.code}` {_inert(notice.message)}" for notice in notices]
    gha.append_summary(env, "\n".join(lines))


def _inert(text: str) -> str:
    """Text that Markdown shows as it is: in a code span that it cannot leave."""
    return "`" + " ".join(text.replace("`", "'").split())[:500] + "`"

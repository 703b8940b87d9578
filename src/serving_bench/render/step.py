"""The render step: validate configs, write plans and the matrix, set the step's outputs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TextIO

from serving_bench import gha
from serving_bench.config.loader import load
from serving_bench.contracts import Plan
from serving_bench.errors import ConfigError, Problem
from serving_bench.files import dump_json, write_atomic, write_model
from serving_bench.render.matrix import check_line, matrix, plan_name


@dataclass(frozen=True)
class RenderOptions:
    """What the command was asked for; ``out`` None means check only."""

    config_dir: Path
    names: tuple[str, ...] = ()
    out: Path | None = None
    conc: tuple[int, ...] | None = None
    json_format: bool = False


def run(options: RenderOptions, env: Mapping[str, str], out: TextIO) -> tuple[Plan, ...]:
    """Validate and, unless only checking, write; returns the plans.

    Raises ``ConfigError`` with every problem, after they were annotated on a runner.
    """
    try:
        loaded = load(options.config_dir, options.names)
    except ConfigError as error:
        annotate(error.problems, env, out)
        raise
    annotate(loaded.warnings, env, out)
    plans = tuple(_with_conc(plan, options.conc) for plan in loaded.plans)
    if options.json_format:
        print(problems_json(loaded.warnings), end="", file=out)
    else:
        for problem in loaded.warnings:
            print(f"warning: {problem.text()}", file=out)
        for plan in plans:
            print(check_line(plan), file=out)
    if options.out is not None:
        _write(plans, options.out, env, out, quiet=options.json_format)
    return plans


def _with_conc(plan: Plan, conc: tuple[int, ...] | None) -> Plan:
    return plan if conc is None else plan.model_copy(update={"conc": conc})


def problems_json(problems: tuple[Problem, ...]) -> str:
    """Problems as one JSON object: ``{"problems": [{path, line, column, key, message, code, severity}]}``."""
    return dump_json({"problems": [asdict(problem) for problem in problems]})


def annotate(problems: tuple[Problem, ...], env: Mapping[str, str], out: TextIO) -> None:
    """Show problems at their lines of the pull request; nothing outside a runner."""
    if gha.on_runner(env):
        for problem in problems:
            print(gha.problem_annotation(problem), file=out)


def _write(plans: tuple[Plan, ...], folder: Path, env: Mapping[str, str], out: TextIO, *, quiet: bool) -> None:
    plans_path = folder / "plans"
    for plan in plans:
        write_model(plans_path / f"{plan_name(plan)}.json", plan)
    rows = matrix(plans)
    write_atomic(folder / "matrix.json", dump_json(rows))
    gha.set_output(env, "matrix", json.dumps(rows, separators=(",", ":")))
    gha.set_output(env, "count", str(len(rows["include"])))
    gha.set_output(env, "plans-path", str(plans_path))
    if not quiet:
        print(f"{len(plans)} plan(s) in {plans_path}", file=out)

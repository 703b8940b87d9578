"""Contracts between action.yml files, the workflows that use them, scripts/action and the READMEs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
ACTIONS = ("render", "launch", "analyze")
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))
EXPRESSION = "${{"


def load(path: Path) -> dict[str, Any]:
    data: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    return data


def action(name: str) -> dict[str, Any]:
    return load(ROOT / "actions" / name / "action.yml")


def workflow_steps(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each step of a workflow with the id of its job."""
    for job, body in load(path)["jobs"].items():
        for step in body.get("steps", ()):
            yield job, step


def every_run_line() -> Iterator[tuple[str, str]]:
    """Each script that stands in YAML, with where it stands."""
    for path in WORKFLOWS:
        yield from ((f"{path.name}: {job}", step["run"]) for job, step in workflow_steps(path) if "run" in step)
    for name in ACTIONS:
        yield from ((name, step["run"]) for step in action(name)["runs"]["steps"] if "run" in step)


def test_there_is_a_folder_per_action() -> None:
    assert sorted(ACTIONS) == sorted(path.parent.name for path in ROOT.glob("actions/*/action.yml"))


@pytest.mark.parametrize(("where", "script"), list(every_run_line()))
def test_no_expression_stands_inside_a_script(where: str, script: str) -> None:
    assert EXPRESSION not in script, where


@pytest.mark.parametrize("name", ACTIONS)
def test_every_input_and_output_is_described(name: str) -> None:
    data = action(name)
    for key, spec in {**data["inputs"], **data["outputs"]}.items():
        assert len(spec["description"]) > 10, key
        assert EXPRESSION not in spec["description"], key


@pytest.mark.parametrize("name", ACTIONS)
def test_every_input_is_mapped_and_read(name: str) -> None:
    data = action(name)
    (step,) = data["runs"]["steps"]
    variables = {f"INPUT_{key.upper().replace('-', '_')}": key for key in data["inputs"]}
    assert step["env"] == {variable: f"${{{{ inputs.{key} }}}}" for variable, key in variables.items()}
    script = (ROOT / "scripts/action").read_text(encoding="utf-8")
    branch = script.partition(f"\n  {name})\n")[2].partition("\n    ;;\n")[0]
    assert set(re.findall(r"INPUT_[A-Z_]+", branch)) == set(variables)


@pytest.mark.parametrize("name", ACTIONS)
def test_every_output_is_one_that_the_step_sets(name: str) -> None:
    outputs = {key: spec["value"] for key, spec in action(name)["outputs"].items()}
    assert outputs == {key: f"${{{{ steps.{name}.outputs.{key} }}}}" for key in outputs}
    package = ROOT / "src/serving_bench"
    source = "".join(path.read_text(encoding="utf-8") for path in [package / "cli.py", *(package / name).rglob("*.py")])
    for key in outputs:
        assert re.search(rf'["\']{key}["\']', source), f"nothing in {name} sets the output {key}"


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_workflows_use_only_inputs_and_outputs_that_exist(path: Path) -> None:
    local: dict[str, str] = {}
    for job, step in workflow_steps(path):
        name = step.get("uses", "").removeprefix("./actions/")
        if name not in ACTIONS:
            continue
        assert set(step.get("with", {})) <= set(action(name)["inputs"]), job
        required = {key for key, spec in action(name)["inputs"].items() if spec.get("required")}
        assert required <= set(step.get("with", {})), job
        local[step["id"]] = name
    for step_id, output in re.findall(r"steps\.([\w-]+)\.outputs\.([\w-]+)", path.read_text(encoding="utf-8")):
        assert output in action(local[step_id])["outputs"]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_workflows_grant_nothing_by_default_and_explain_each_grant(path: Path) -> None:
    data = load(path)
    assert data["permissions"] == {}
    assert "group" in data["concurrency"]
    for job in data["jobs"].values():
        assert "timeout-minutes" in job
    for line in path.read_text(encoding="utf-8").splitlines():
        if re.match(r"\s+[\w-]+: (read|write)\b", line):
            assert re.search(r"(read|write) # \w", line), line


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_checkouts_leave_no_credentials(path: Path) -> None:
    checkouts = [step for _, step in workflow_steps(path) if step.get("uses", "").startswith("actions/checkout@")]
    assert checkouts
    assert all(step["with"]["persist-credentials"] is False for step in checkouts)


def test_foreign_actions_are_pinned_alike_everywhere() -> None:
    pins: dict[str, set[str]] = {}
    for path in [*WORKFLOWS, *ROOT.glob("actions/*/*"), *ROOT.glob("*.md"), *ROOT.glob("docs/*.md")]:
        for name, pin in re.findall(r"uses: ((?!\./)[\w./-]+)@(.+)", path.read_text(encoding="utf-8")):
            assert re.fullmatch(r"[0-9a-f]{40} # v\d+\.\d+\.\d+", pin), f"{path}: {name}@{pin}"
            pins.setdefault(name, set()).add(pin)
    assert len(pins) >= 3
    assert {name: found for name, found in pins.items() if len(found) > 1} == {}

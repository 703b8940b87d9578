"""The documents say what the code says."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
import yaml

from serving_bench.analyze.validity import CHECKS, POINT_MISSING
from serving_bench.config.loader import load
from serving_bench.config.models import ClusterYaml, DatasetYaml, ScenarioYaml, ServingYaml, Yaml
from serving_bench.errors import Exit

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("actions/*/*.md")])


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def section(text: str, title: str) -> str:
    found = text.partition(f"\n## {title}\n")[2].partition("\n## ")[0]
    assert found, title
    return found


def rows(text: str) -> list[list[str]]:
    """Cells of the first table's rows, without its head."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


@pytest.mark.parametrize(
    ("title", "model"),
    [
        ("serving/&lt;name&gt;.yaml", ServingYaml),
        ("clusters.yaml", ClusterYaml),
        ("scenarios.yaml", ScenarioYaml),
        ("datasets.lock.yaml", DatasetYaml),
    ],
)
def test_docs_list_every_key_of_the_yaml_files(title: str, model: type[Yaml]) -> None:
    table = rows(section(read("docs/configs.md"), title))
    named = {key for cells in table for key in re.findall(r"`([\w-]+)`", cells[0])}
    assert named == {field.replace("_", "-") for field in model.model_fields}
    required = {
        key for cells in table if cells[1].startswith("required") for key in re.findall(r"`([\w-]+)`", cells[0])[:1]
    }
    assert required == {name.replace("_", "-") for name, field in model.model_fields.items() if field.is_required()}


def test_docs_list_every_reason_with_its_level() -> None:
    table = rows(section(read("docs/report.md"), "Can a point be believed?"))
    listed = {cells[0].strip("`"): cells[1] for cells in table}
    assert listed == {**{check.code: check.level.value for check in CHECKS}, POINT_MISSING: "INVALID"}


def test_the_readme_lists_every_exit_status() -> None:
    table = rows(section(read("README.md"), "The steps"))
    listed = {int(number) for cells in table for number in re.findall(r"\d+", cells[0])}
    assert listed == {status.value for status in Exit}


def test_the_config_in_the_readme_is_one(tmp_path: Path) -> None:
    (block,) = re.findall(r"```yaml\n(.+?)```", section(read("README.md"), "A config"), re.DOTALL)
    shutil.copytree(ROOT / "configs", tmp_path / "configs", ignore=shutil.ignore_patterns("models"))
    (tmp_path / "configs/serving/my-2rep.yaml").write_text(block, encoding="utf-8")
    (plan,) = load(tmp_path / "configs", ["my-2rep"]).plans
    assert (plan.replicas, plan.conc) == (2, (4, 8))


def test_commands_in_the_readme_exist() -> None:
    for name in re.findall(r"\./(scripts/[\w-]+)", read("README.md") + read("CONTRIBUTING.md")):
        assert (ROOT / name).stat().st_mode & 0o111, name


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(document: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", document.read_text(encoding="utf-8")):
        if "://" not in target:
            assert (document.parent / target).exists(), target


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_yaml_in_documents_is_yaml(document: Path) -> None:
    for block in re.findall(r"```yaml\n(.+?)```", document.read_text(encoding="utf-8"), re.DOTALL):
        assert yaml.safe_load(block)


def test_continuous_integration_runs_the_command_of_the_readme() -> None:
    assert "./scripts/test" in section(read("README.md"), "Try it")
    assert "./scripts/test" in read(".ci/run")
    assert "./scripts/test" in read(".github/workflows/ci.yml")

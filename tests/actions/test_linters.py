"""Workflows, actions and scripts pass the linters of their kind."""

from __future__ import annotations

import importlib.util
import subprocess
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]
Tool = Callable[[str], str]


def passes(*command: object) -> None:
    done = subprocess.run([str(part) for part in command], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_zizmor_finds_nothing(tool: Tool) -> None:
    passes(tool("zizmor"), "--offline", "--quiet", "--no-progress", ".github", "actions")


@pytest.mark.parametrize(
    ("schema", "pattern"),
    [("vendor.github-workflows", ".github/workflows/*.yml"), ("vendor.github-actions", "**/action.yml")],
)
def test_schema_accepts(tool: Tool, schema: str, pattern: str) -> None:
    files = [path for path in ROOT.glob(pattern) if ".cache" not in path.parts]
    assert files
    passes(tool("check-jsonschema"), "--builtin-schema", schema, *files)


def shell_scripts() -> list[Path]:
    candidates = [*(ROOT / "scripts").iterdir(), ROOT / ".ci/run"]
    return [path for path in candidates if path.is_file() and (path.suffix == ".sh" or is_bash(path))]


def is_bash(path: Path) -> bool:
    return path.read_bytes().startswith(b"#!/usr/bin/env bash\n")


def test_shellcheck_finds_nothing(tool: Tool) -> None:
    scripts = shell_scripts()
    assert {path.name for path in scripts} >= {"demo", "test", "action", "lib.sh", "run"}
    passes(tool("shellcheck"), "--external-sources", *scripts)


def generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("docs", ROOT / "scripts/docs.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_generated_parts_of_the_documents_are_current() -> None:
    assert list(generator().stale(ROOT)) == []


def test_a_changed_description_makes_a_table_stale() -> None:
    docs = generator()
    action = {"inputs": {"a": {"description": "x | y", "default": "1"}}, "outputs": {"b": {"description": "z"}}}
    readme = f"top\n{docs.BEGIN}\n| old |\n{docs.END}\nend\n"
    assert docs.renewed(readme, docs.action_tables(action)) == (
        f"top\n{docs.BEGIN}\n"
        "| input | default | meaning |\n|---|---|---|\n| `a` | `1` | x \\| y |\n\n"
        "| output | meaning |\n|---|---|\n| `b` | z |\n"
        f"{docs.END}\nend\n"
    )


def test_lock_files_pin_hashes_and_name_no_host() -> None:
    locks = sorted((ROOT / "requirements").glob("*.txt"))
    assert {path.stem for path in locks} == {"bench", "bench-overrides", "dev", "toolkit", "uv"}
    for path in locks:
        text = path.read_text(encoding="utf-8")
        assert "://" not in text, path
        if path.stem != "bench-overrides":
            pins = [line for line in text.splitlines() if line and not line.startswith((" ", "#"))]
            assert pins
            assert all("==" in line and line.endswith("\\") for line in pins), path

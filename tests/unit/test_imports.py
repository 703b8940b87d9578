"""The direction of imports: each layer knows only the layers before it."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[2] / "src" / "serving_bench"

LAYERS = (
    {"__init__", "errors"},
    {"gha", "process", "files"},
    {"contracts", "report_contract"},
    {"engines"},
    {"routers"},
    {"config", "datasets"},
    {"clients"},
    {"render", "launch", "analyze"},
    {"cli"},
    {"__main__"},
)
APART = {"render", "launch", "analyze"}
"""Units of one layer that never import one another: they meet in contracts and files."""

ONLY_IN = {
    "requests": {"clients", "datasets"},
    "github": {"clients"},
    "huggingface_hub": {"clients", "datasets"},
    "numpy": {"analyze"},
    "pandas": {"analyze"},
    "scipy": {"analyze"},
}
"""Third-party package → the units that may import it."""

QUICK = {"numpy", "pandas", "scipy", "requests", "github", "huggingface_hub"}
"""What importing the command line must not bring along."""


def unit(parts: tuple[str, ...]) -> str:
    """The layer's member that a module under the package belongs to: ``launch`` for ``launch/runtimes/process.py``."""
    return parts[0] if parts else "__init__"


def level(name: str) -> int:
    for index, layer in enumerate(LAYERS):
        if name in layer:
            return index
    raise AssertionError(f"serving_bench.{name} is in no layer: add it to LAYERS where it belongs")


def imported(source: str, module: tuple[str, ...], *, is_package: bool) -> Iterator[tuple[int, tuple[str, ...]]]:
    """Line and dotted name of everything that a module imports, at its top or inside a function."""
    here = ("serving_bench", *module)
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, tuple(alias.name.split("."))) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = here[: len(here) - node.level + is_package] if node.level else ()
            name = (*base, *(node.module or "").split(".")) if node.module else base
            yield from ((node.lineno, (*name, alias.name)) for alias in node.names)


def faults(source: str, module: tuple[str, ...], *, is_package: bool = False) -> list[str]:
    """What a module's imports do against the rules."""
    mine = unit(module)
    found = []
    for line, name in imported(source, module, is_package=is_package):
        if name[0] in ONLY_IN and mine not in ONLY_IN[name[0]]:
            found.append(f"line {line}: {name[0]} belongs in {sorted(ONLY_IN[name[0]])} only")
        if name[0] != "serving_bench":
            continue
        other = unit(name[1:])
        if other not in set().union(*LAYERS) and len(name) == 2:
            other = "__init__"
        if other == mine:
            continue
        if level(other) > level(mine):
            found.append(f"line {line}: {mine} may not import {other}, which stands above it")
        if {mine, other} <= APART:
            found.append(f"line {line}: {mine} and {other} meet in contracts and files only")
    return found


def environment_reads(source: str) -> list[int]:
    """Lines that read the environment or end the process."""
    lines = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            name = f"{node.value.id}.{node.attr}"
        elif isinstance(node, ast.ImportFrom) and node.module == "os":
            name = f"os.{node.names[0].name}"
        else:
            continue
        if name in {"os.environ", "os.getenv", "os.putenv", "sys.exit"}:
            lines.append(node.lineno)
    return lines


def modules() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_point_down(path: Path) -> None:
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    is_package = parts[-1] == "__init__"
    module = parts[:-1] if is_package else parts
    source = path.read_text(encoding="utf-8")
    assert faults(source, module, is_package=is_package) == []
    if unit(module) != "cli":
        assert environment_reads(source) == [], "only cli.py reads the environment and exits"


@pytest.mark.parametrize(
    ("module", "source"),
    [
        (("errors",), "from serving_bench.files import read_bytes"),
        (("contracts",), "from serving_bench import config"),
        (("config", "loader"), "import serving_bench.clients.http"),
        (("launch", "step"), "from serving_bench.analyze.stats import mean"),
        (("analyze", "step"), "from ..render import matrix"),
        (("render", "step"), "def late():\n    from serving_bench import cli"),
        (("launch", "ports"), "import requests"),
        (("render", "matrix"), "import numpy as np"),
        (("cli",), "from pandas import DataFrame"),
    ],
)
def test_a_wrong_import_is_found(module: tuple[str, ...], source: str) -> None:
    assert len(faults(source, module)) == 1


@pytest.mark.parametrize(
    ("module", "source"),
    [
        (("analyze", "stats"), "import numpy as np"),
        (("clients", "http"), "import requests"),
        (("launch", "step"), "from .ports import lease\nfrom ..clients.http import get"),
        (("cli",), "from serving_bench import __version__\nfrom serving_bench.launch import step"),
    ],
)
def test_a_right_import_is_not(module: tuple[str, ...], source: str) -> None:
    assert faults(source, module) == []


@pytest.mark.parametrize(
    "source", ["import os\nos.environ['A']", "import os\nos.getenv('A')", "from os import environ"]
)
def test_a_read_of_the_environment_is_found(source: str) -> None:
    assert len(environment_reads(source)) == 1


def test_the_command_line_starts_without_the_heavy_packages() -> None:
    code = "import sys, serving_bench.cli; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert QUICK & set(done.stdout.split()) == set()


def test_a_check_imports_neither_the_generator_nor_the_hub() -> None:
    """A check of one config has less than half a second, most of it for importing."""
    code = """
import os, sys
from serving_bench.cli import run
sys.stdout = open(os.devnull, "w")
assert run(["render", "--check", "demo-2rep-dyn-mocker-kv"], {}) == 0
print(*sys.modules, file=sys.__stdout__)
"""
    root = Path(__file__).parents[2]
    done = subprocess.run([sys.executable, "-c", code], cwd=root, check=True, capture_output=True, text=True)
    heavy = {"serving_bench.datasets.voice_agent", "huggingface_hub", "httpx2", "requests", "numpy"}
    assert heavy.isdisjoint(done.stdout.split())

"""The module map in the README names exactly the modules that there are."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "serving_bench"
ROW = re.compile(r"^\| `(?P<name>[\w./]+)` \| (?P<meaning>.+) \|$", re.MULTILINE)


def mapped(readme: str) -> dict[str, str]:
    """Path under ``src/serving_bench`` → what the map says of it."""
    section = readme.partition("\n## Module map\n")[2].partition("\n## ")[0]
    return {row["name"]: row["meaning"] for row in ROW.finditer(section)}


def modules() -> set[str]:
    """Every module that holds code; an empty ``__init__.py`` is no module worth a line."""
    files = (path for path in PACKAGE.rglob("*.py") if path.stat().st_size)
    return {str(path.relative_to(PACKAGE)) for path in files}


def test_map_and_modules_agree() -> None:
    names = set(mapped((ROOT / "README.md").read_text(encoding="utf-8")))
    assert names - modules() == set(), "in the map, not in src/serving_bench"
    assert modules() - names == set(), "in src/serving_bench, not in the map"


def test_reading_the_map() -> None:
    table = "| module | what it does |\n|---|---|\n| `a/b.py` | does b |\n"
    text = f"# x\n\n## Module map\n\n{table}\n## Next\n\n| `c.py` | no |\n"
    assert mapped(text) == {"a/b.py": "does b"}

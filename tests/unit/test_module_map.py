"""The maps of the code in the documents name exactly what there is."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "serving_bench"
ROW = re.compile(r"^\| `(?P<name>[\w./]+)` \| (?P<meaning>.+) \|$", re.MULTILINE)


def mapped(text: str) -> dict[str, str]:
    """Path under ``src/serving_bench`` → what the map says of it."""
    return {row["name"]: row["meaning"] for row in ROW.finditer(text)}


def section(text: str, title: str) -> str:
    return text.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def modules() -> set[str]:
    """Every module that holds code; an empty ``__init__.py`` is no module worth a line."""
    files = (path for path in PACKAGE.rglob("*.py") if path.stat().st_size)
    return {str(path.relative_to(PACKAGE)) for path in files}


def units() -> set[str]:
    """Modules and folders at the top of the package."""
    folders = {f"{path.parent.name}/" for path in PACKAGE.glob("*/__init__.py")}
    return folders | {path.name for path in PACKAGE.glob("*.py") if not path.name.startswith("__")}


def test_the_map_of_modules_and_the_modules_agree() -> None:
    found = mapped((ROOT / "docs/modules.md").read_text(encoding="utf-8"))
    assert set(found) - modules() == set(), "in the map, not in src/serving_bench"
    assert modules() - set(found) == set(), "in src/serving_bench, not in the map: run scripts/docs.py"
    assert all(len(meaning) > 10 for meaning in found.values())


def test_the_overview_in_the_readme_and_the_package_agree() -> None:
    found = set(mapped(section((ROOT / "README.md").read_text(encoding="utf-8"), "Module map")))
    assert found - units() == set(), "in the README, not in src/serving_bench"
    assert units() - found == set(), "in src/serving_bench, not in the README"


def test_reading_a_map() -> None:
    table = "| module | what it does |\n|---|---|\n| `a/b.py` | does b |\n"
    assert mapped(section(f"# x\n\n## Map\n\n{table}\n## Next\n\n| `c.py` | no |\n", "Map")) == {"a/b.py": "does b"}

"""For maintainers: write the tables of inputs and outputs in actions/*/README.md again from action.yml.

Usage: ``.cache/test/bin/python scripts/docs.py``; with ``--check`` nothing is written and the exit status is 1
where a table is stale.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parent.parent
BEGIN = "<!-- begin: generated from action.yml by scripts/docs.py -->"
END = "<!-- end -->"


def cell(text: object) -> str:
    """Text for a cell of a Markdown table."""
    return " ".join(str(text).split()).replace("|", "\\|")


def default(spec: Mapping[str, Any]) -> str:
    if spec.get("required"):
        return "required"
    value = spec.get("default", "")
    return f"`{value}`" if value != "" else "empty"


def tables(action: Mapping[str, Any]) -> str:
    """The tables of one action's inputs and outputs."""
    rows = ["| input | default | meaning |", "|---|---|---|"]
    rows += [f"| `{name}` | {default(spec)} | {cell(spec['description'])} |" for name, spec in action["inputs"].items()]
    rows += ["", "| output | meaning |", "|---|---|"]
    rows += [f"| `{name}` | {cell(spec['description'])} |" for name, spec in action["outputs"].items()]
    return "\n".join(rows)


def renewed(readme: str, action: Mapping[str, Any]) -> str:
    """The README with its generated part written again; ``ValueError`` where it has no such part."""
    before, found_begin, rest = readme.partition(BEGIN)
    _, found_end, after = rest.partition(END)
    if not (found_begin and found_end):
        raise ValueError(f"the README has no part between {BEGIN!r} and {END!r}")
    return f"{before}{BEGIN}\n{tables(action)}\n{END}{after}"


def stale(root: Path) -> dict[Path, str]:
    """README → what should stand in it, for each action whose README says otherwise."""
    wanted = {}
    for definition in sorted(root.glob("actions/*/action.yml")):
        readme = definition.with_name("README.md")
        text = readme.read_text(encoding="utf-8")
        new = renewed(text, yaml.safe_load(definition.read_text(encoding="utf-8")))
        if new != text:
            wanted[readme] = new
    return wanted


def main(arguments: list[str]) -> int:
    wanted = stale(ROOT)
    for readme, text in wanted.items():
        print(f"{readme.relative_to(ROOT)}: {'stale' if '--check' in arguments else 'written'}")
        if "--check" not in arguments:
            readme.write_text(text, encoding="utf-8")
    return int(bool(wanted) and "--check" in arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

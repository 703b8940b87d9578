"""Small pieces of GitHub-flavoured Markdown; whatever comes from elsewhere is made inert."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from serving_bench.analyze.plain import plain

# A zero-width space after @ and #: GitHub looks for mentions and references in the
# rendered text, where an entity alone is the character again.
_ENTITIES = {character: f"&#{ord(character)};" for character in "&<>|`*_[]~\\!$"}
_ENTITIES |= {"@": "&#64;&#8203;", "#": "&#35;&#8203;"}
_SPECIAL = re.compile("[" + re.escape("".join(_ENTITIES)) + "]")
_LINK = re.compile(r"(?i)(?<=www)\.|:(?=\S)")
"""What makes a link of plain text, or a picture of ``:name:``."""


def inert(value: object, longest: int = 400) -> str:
    """Text that shows as it is: no markup, mention, reference, link or table cell can come of it."""
    escaped = _SPECIAL.sub(lambda found: _ENTITIES[found[0]], plain(value, longest))
    return _LINK.sub(lambda found: f"&#{ord(found[0])};", escaped)


def table(header: Sequence[str], rows: Iterable[Sequence[str]], left: int = 1) -> str:
    """A table whose first ``left`` columns are aligned left, the others right. Cells are Markdown."""
    marks = ["---"] * left + ["---:"] * (len(header) - left)
    return "\n".join(f"| {' | '.join(row)} |" for row in (header, marks, *rows)) + "\n"


def details(summary: str, body: str) -> str:
    """A fold; both parts are Markdown."""
    return f"<details><summary>{summary}</summary>\n\n{body}\n</details>\n"


def struck(cell: str) -> str:
    """A number that nobody should use."""
    return f"~~{cell}~~" if any(character.isdigit() for character in cell) else cell

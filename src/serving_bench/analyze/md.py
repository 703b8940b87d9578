"""Small pieces of GitHub-flavoured Markdown; whatever comes from elsewhere is made inert."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from serving_bench.analyze.plain import plain

# A zero-width space after @ and #: GitHub looks for mentions and references in the
# rendered text, where an entity alone is the character again.
_ENTITIES = {character: f"&#{ord(character)};" for character in "&<>|`*[]~\\!$_:."}
_ENTITIES |= {"@": "&#64;&#8203;", "#": "&#35;&#8203;"}
_SPECIAL = re.compile(
    r"""[&<>|`*\[\]~\\!$@#]
    | (?<![A-Za-z0-9])_ | _(?![A-Za-z0-9])  # an underscore inside a word is no emphasis
    | :(?=//) | :(?=[a-z+-][\w+-]*:)     # what makes a link of an address, or a picture of a name
    | (?<=www)\.""",
    re.VERBOSE | re.IGNORECASE,
)


def inert(value: object, longest: int = 400) -> str:
    """Text that shows as it is: no markup, mention, reference, link or table cell can come of it."""
    return _SPECIAL.sub(lambda found: _ENTITIES[found[0]], plain(value, longest))


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

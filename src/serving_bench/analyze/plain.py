"""Names and messages made harmless for a view: no control characters, no endless lengths.

Configs, log lines and error texts come from elsewhere. What they hold must
neither steer a terminal nor break a table, a comment or a page.
"""

from __future__ import annotations

import unicodedata

LONGEST = 400

_BIDI = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def _visible(character: str) -> bool:
    return unicodedata.category(character) not in {"Cc", "Cs"} and character not in _BIDI


def plain(value: object, longest: int = LONGEST) -> str:
    """One line of visible characters; newlines and tabs become spaces, long texts are cut."""
    text = str(value)[: 4 * longest]
    line = " ".join("".join(character if _visible(character) else " " for character in text).split())
    return line if len(line) <= longest else line[: longest - 1] + "…"

"""Which program do the first words of a command name?"""

from __future__ import annotations

import re
from collections.abc import Sequence

_PYTHON = re.compile(r"(?:.*/)?python(?:3(?:\.\d+)?)?\Z")


def named_by(words: Sequence[str], pattern: Sequence[str]) -> bool:
    """Whether the words start with the pattern, in which ``python3`` stands for any Python 3."""
    head = list(words[: len(pattern)])
    if head and pattern[0] == "python3" and _PYTHON.match(head[0]):
        head[0] = "python3"
    return head == list(pattern)

"""Splitting a command line of a config into words as a POSIX shell would, and nothing else of a shell."""

from __future__ import annotations

import shlex

_FORBIDDEN = "|&;<>()$`"
_MEANING = {
    "$": "variables and substitutions are not expanded",
    "`": "command substitution is not done",
    "|": "there are no pipes",
    "<": "there is no redirection",
    ">": "there is no redirection",
    "#": "comments are not allowed inside a command",
}


class WordError(ValueError):
    """The command line needs a shell, or its quotes do not close."""


def split(command: str) -> list[str]:
    """Words of ``command``; ``WordError`` says what of a shell it would need."""
    character = _needs_shell(command)
    if character is not None:
        why = _MEANING.get(character, "one command is allowed")
        raise WordError(f"found {character!r} outside single quotes: the command is not run by a shell, {why}")
    try:
        words = shlex.split(command, posix=True)
    except ValueError as error:
        raise WordError(f"the quotes do not close ({str(error).lower()})") from error
    if not words:
        raise WordError("the command is empty")
    return words


def _needs_shell(command: str) -> str | None:
    """The first character with a meaning that only a shell gives it, if any."""
    quote = ""
    escaped = False
    before = " "
    for character in command:
        if escaped:
            escaped = False
        elif character == "\\" and quote != "'":
            escaped = True
        elif quote:
            if character == quote:
                quote = ""
            elif quote == '"' and character in "$`":
                return character
        elif character in "'\"":
            quote = character
        elif character in _FORBIDDEN or (character == "#" and before.isspace()):
            return character
        before = character
    return None

"""Splitting a command line of a config into words as a POSIX shell would, and nothing else of a shell.

``shlex`` of the standard library is close, but keeps a line continuation and
the backslash of ``"\\$"``, where a shell removes both.
"""

from __future__ import annotations

import re

_FORBIDDEN = "|&;<>()$`"
_ESCAPED_IN_DOUBLE_QUOTES = '$`"\\'
_BLANK = " \t\n"
_PLAIN = re.compile(r"[^|&;<>()$`'\"\\#]*\Z")
"""Commands without anything that a shell gives a meaning, which is most: they are split at blanks."""
_PLAIN_WORD = re.compile(r"[^ \t\n]+")
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


class _Splitter:
    """Quote removal and field splitting of the POSIX shell grammar (2.2, 2.3); a new line is a blank."""

    def __init__(self, text: str) -> None:
        self.rest = iter(text)
        self.words: list[str] = []
        self.word: str | None = None
        """The word that is being read; None between words."""

    def add(self, text: str) -> None:
        self.word = (self.word or "") + text

    def run(self) -> list[str]:
        for character in self.rest:
            if character in _BLANK:
                self.end()
            elif character == "'":
                self.add(self.single_quoted())
            elif character == '"':
                self.add(self.double_quoted())
            elif character == "\\":
                self.escaped()
            elif character in _FORBIDDEN or (character == "#" and self.word is None):
                raise _needs_shell(character)
            else:
                self.add(character)
        self.end()
        return self.words

    def end(self) -> None:
        if self.word is not None:
            self.words.append(self.word)
            self.word = None

    def escaped(self) -> None:
        character = next(self.rest, None)
        if character is None:
            raise WordError("the command ends with a backslash")
        if character != "\n":
            self.add(character)

    def single_quoted(self) -> str:
        text = ""
        for character in self.rest:
            if character == "'":
                return text
            text += character
        raise WordError("the single quotes do not close")

    def double_quoted(self) -> str:
        text = ""
        for character in self.rest:
            if character == '"':
                return text
            if character in "$`":
                raise _needs_shell(character)
            text += self.escaped_in_double_quotes() if character == "\\" else character
        raise WordError("the double quotes do not close")

    def escaped_in_double_quotes(self) -> str:
        character = next(self.rest, None)
        if character is None:
            raise WordError("the double quotes do not close")
        if character == "\n":
            return ""
        return character if character in _ESCAPED_IN_DOUBLE_QUOTES else "\\" + character


def _needs_shell(character: str) -> WordError:
    why = _MEANING.get(character, "one command is allowed")
    return WordError(f"found {character!r} outside single quotes: the command is not run by a shell, {why}")


def split(command: str) -> list[str]:
    """Words of ``command``; ``WordError`` says what of a shell it would need."""
    words = _PLAIN_WORD.findall(command) if _PLAIN.match(command) else _Splitter(command).run()
    if not words:
        raise WordError("the command is empty")
    return words

"""YAML for configuration: what is ambiguous is an error, and every value knows its place.

The file is read event by event with PyYAML's parser and resolved by the YAML
1.2 core schema. Duplicate keys, YAML 1.1 booleans (``on``, ``no``, …), tags,
merge keys, keys that are no strings, tabs, several documents, and documents
that are too large, too deep or expand too far are problems with a code and a
place. Nothing here recurses, so depth cannot exhaust the stack.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import yaml

from serving_bench.errors import Problem

MAX_BYTES = 1024 * 1024
MAX_DEPTH = 32
MAX_NODES = 50_000
MAX_PROBLEMS = 1_000
"""Of one document: more help nobody, and cost the time of those who wait for the first."""

Key = tuple[str | int, ...]
Place = tuple[str, int, int]
"""Path of the file, line and column, both from 1; line 0 for what stands in no file."""

_INTEGER = re.compile(r"[-+]?(?:0|[1-9][0-9]*)\Z")
_FLOAT = re.compile(r"[-+]?(?:[0-9]+\.[0-9]*|\.[0-9]+|[0-9]+)(?:[eE][-+]?[0-9]+)?\Z")
_AMBIGUOUS = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null"})
_NOT_FINITE = re.compile(r"[-+]?\.(?:inf|nan)\Z", re.IGNORECASE)
_MAX_INTEGER_DIGITS = 18
_ODD_BREAK = re.compile("\r(?!\n)|[\x85\u2028\u2029]")
"""Ends of lines to YAML, and to editors and reviews the middle of one: a key could hide behind it."""
_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass
class Document:
    """The value, the place of each value and key, and what is wrong.

    Values may come from other files than ``path`` (see ``layers``): each place
    names its own.
    """

    path: str
    value: Any = None
    places: dict[Key, Place] = field(default_factory=dict)
    key_places: dict[Key, Place] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)

    def place(self, key: Key) -> Place:
        """The place of the value at ``key``, or of the nearest value around it."""
        while key and key not in self.places:
            key = key[:-1]
        return self.places.get(key, (self.path, 1, 1))

    def problem(self, key: Key, message: str, code: str, *, severity: str = "error", at_key: bool = False) -> Problem:
        """A problem at the place of the value of ``key``, or of the key itself; its path is shown dotted."""
        path, line, column = self.key_places.get(key, self.place(key)) if at_key else self.place(key)
        used = f" (used by {self.path})" if path != self.path else ""
        return Problem(path, line, column, dotted(key), message + used, code, severity)


def dotted(key: Key) -> str:
    """``("router", "env", "A")`` → ``router.env.A``; list positions in brackets, odd names quoted."""
    text = ""
    for part in key:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            shown = part if re.fullmatch(r"[\w-]{1,80}", part, re.ASCII) else shorten(part)
            text += f".{shown}" if text else shown
    return text


def is_name(text: str) -> bool:
    """Whether a string can be the name of a config, scenario, cluster or dataset."""
    return re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", text) is not None


def shorten(value: object, limit: int = 60) -> str:
    """A value as it is shown in a message: quoted, escaped to printable ASCII, cut."""
    if isinstance(value, str):
        shown = ascii(value[: limit + 1])
    elif isinstance(value, dict | list):
        shown = "a mapping" if isinstance(value, dict) else "a list"
    elif value is None:
        shown = "nothing"
    elif isinstance(value, bool):
        shown = str(value).lower()
    else:
        shown = ascii(value)
    return shown if len(shown) <= limit + 2 else shown[:limit] + "…'"


class _Stop(Exception):  # noqa: N818  not an error of its own: it ends the reading
    """Reading cannot go on."""


@dataclass
class _Open:
    """A collection that is being read."""

    value: dict[str, Any] | list[Any]
    key: Key
    place: Place
    anchor: str | None
    entry: str | None = None
    """The mapping key whose value comes next; None: a key comes next."""
    skip: bool = False
    """The next value belongs to a key that cannot be kept."""
    size: int = 1


class _Reader:
    def __init__(self, path: str) -> None:
        self.document = Document(path)
        self.stack: list[_Open] = []
        self.anchors: dict[str, tuple[Any, int]] = {}
        self.nodes = 0
        self.done = False

    def wrong(self, place: Place, message: str, code: str) -> None:
        key = dotted(self._next_key())
        self.document.problems.append(Problem(*place, key, message, code))
        if len(self.document.problems) >= MAX_PROBLEMS:
            self.document.problems.append(too_many(self.document.path))
            raise _Stop

    def _next_key(self) -> Key:
        if not self.stack:
            return ()
        top = self.stack[-1]
        if isinstance(top.value, list):
            return (*top.key, len(top.value))
        return top.key if top.entry is None else (*top.key, top.entry)

    def feed(self, event: yaml.events.Event) -> None:
        mark = event.start_mark
        path = self.document.path
        place = (path, mark.line + 1, mark.column + 1) if mark else (path, 1, 1)
        if isinstance(event, yaml.events.ScalarEvent):  # the most of them
            self._scalar(event, place)
        elif isinstance(event, yaml.events.CollectionStartEvent):
            self._start(event, place)
        elif isinstance(event, yaml.events.CollectionEndEvent):
            top = self.stack.pop()
            if top.anchor is not None:
                self.anchors[top.anchor] = (top.value, top.size)
            self._put(top.value, top.place, top.size, opened=True)
        elif isinstance(event, yaml.events.AliasEvent):
            self._alias(event, place)
        elif isinstance(event, yaml.events.DocumentEndEvent):
            self.done = True
        elif isinstance(event, yaml.events.DocumentStartEvent) and self.done:
            self.wrong(place, "a second document starts here, one is allowed", "SB-YAML-DOCUMENTS")
            raise _Stop

    def _count(self, place: Place, nodes: int) -> None:
        self.nodes += nodes
        if self.nodes > MAX_NODES:
            self.wrong(place, f"the document has more than {MAX_NODES:,} values", "SB-YAML-SIZE")
            raise _Stop

    def _check_tag(self, tag: str | None, place: Place) -> None:
        if tag is not None and tag != "!":
            self.wrong(place, f"tags are not allowed, found {shorten(tag)}", "SB-YAML-TAG")

    def _check_text(self, text: str, place: Place) -> None:
        if "\0" in text:  # escaped: no command line, environment or path can hold one
            self.wrong(place, "a NUL character is not allowed", "SB-YAML-NUL")

    def _start(self, event: yaml.events.CollectionStartEvent, place: Place) -> None:
        self._check_tag(event.tag, place)
        self._count(place, 1)
        if len(self.stack) >= MAX_DEPTH:
            self.wrong(place, f"values are nested deeper than {MAX_DEPTH} levels", "SB-YAML-DEPTH")
            raise _Stop
        if self._wants_key():
            self.wrong(place, "a key must be a plain string, found a mapping or a list", "SB-YAML-KEY")
            raise _Stop
        key = self._next_key()
        empty: dict[str, Any] | list[Any] = {} if isinstance(event, yaml.events.MappingStartEvent) else []
        self.document.places.setdefault(key, place)
        self.stack.append(_Open(empty, key, place, event.anchor))

    def _wants_key(self) -> bool:
        return bool(self.stack) and isinstance(self.stack[-1].value, dict) and self.stack[-1].entry is None

    def _alias(self, event: yaml.events.AliasEvent, place: Place) -> None:
        known = self.anchors.get(event.anchor or "")
        if known is None:
            self.wrong(place, f"alias {shorten(event.anchor)} has no finished anchor before it", "SB-YAML-ALIAS")
            raise _Stop
        value, size = known
        self._count(place, size)
        if self._wants_key():
            self.wrong(place, "a key must be a plain string, found an alias", "SB-YAML-KEY")
            raise _Stop
        self._put(value, place, size)

    def _scalar(self, event: yaml.events.ScalarEvent, place: Place) -> None:
        self._check_tag(event.tag, place)
        self._check_text(event.value, place)
        self._count(place, 1)
        if self._wants_key():
            self._key(event, place)
            return
        value = event.value if event.style else self._resolve(event, place)
        if event.anchor is not None:
            self.anchors[event.anchor] = (value, 1)
        self._put(value, place, 1)

    def _key(self, event: yaml.events.ScalarEvent, place: Place) -> None:
        top = self.stack[-1]
        name = event.value
        assert isinstance(top.value, dict)  # noqa: S101  a key is only wanted inside a mapping
        top.entry = name
        top.skip = True
        if not event.style and name == "<<":
            self.wrong(place, "merge keys are not allowed", "SB-YAML-MERGE")
        elif not event.style and not isinstance(_plain(name), str):
            self.wrong(place, f"a key must be a string, found {shorten(name)}: put it in quotes", "SB-YAML-KEY")
        elif not event.style and name.lower() in _AMBIGUOUS:
            self.wrong(place, f"{shorten(name)} as a key reads as a boolean to some: put it in quotes", "SB-YAML-BOOL")
        elif name in top.value:
            first = self.document.key_places[(*top.key, name)]
            self.wrong(place, f"the key stands twice, first in line {first[1]}", "SB-YAML-DUPLICATE-KEY")
        else:
            top.skip = False
            self.document.places[(*top.key, name)] = place
            self.document.key_places[(*top.key, name)] = place

    def _resolve(self, event: yaml.events.ScalarEvent, place: Place) -> Any:
        text = event.value
        value = _plain(text)
        if isinstance(value, str) and value.lower() in _AMBIGUOUS:
            self.wrong(place, f"{shorten(text)} is ambiguous: write true, false, null or quotes", "SB-YAML-BOOL")
        elif isinstance(value, float) and not math.isfinite(value):
            self.wrong(place, f"numbers must be finite, found {shorten(text)}", "SB-YAML-NUMBER")
            return text
        elif isinstance(value, int) and len(text) > _MAX_INTEGER_DIGITS:
            self.wrong(place, f"the number has more than {_MAX_INTEGER_DIGITS} digits", "SB-YAML-NUMBER")
            return text
        return value

    def _put(self, value: Any, place: Place, size: int, *, opened: bool = False) -> None:
        """Hang a finished value into the collection around it."""
        if not self.stack:
            self.document.value = value
            self.document.places.setdefault((), place)
            return
        top = self.stack[-1]
        top.size += size
        if isinstance(top.value, list):
            if not opened:
                self.document.places[(*top.key, len(top.value))] = place
            top.value.append(value)
        elif top.entry is not None:
            if not top.skip:
                top.value[top.entry] = value
                self.document.places[(*top.key, top.entry)] = place
            top.entry = None
            top.skip = False


def _plain(text: str) -> Any:
    """A plain scalar by the core schema: null, true, false, integers, floats, else a string."""
    if text in ("", "~", "null"):
        return None
    if text in ("true", "false"):
        return text == "true"
    if _INTEGER.match(text):
        # Longer than any number in a config: the caller says so without converting it.
        return int(text) if len(text) <= _MAX_INTEGER_DIGITS else 0
    if _FLOAT.match(text) and not text.lstrip("+-").isdigit():
        return float(text)
    if _NOT_FINITE.match(text):
        return math.inf
    return text


def _events(text: str) -> Iterator[yaml.events.Event]:
    yield from yaml.parse(text, Loader=_Loader)


def _decode(path: str, data: bytes) -> str | Problem:
    if len(data) > MAX_BYTES:
        return Problem(path, 1, 1, "", f"the file is larger than {MAX_BYTES:,} bytes", "SB-YAML-SIZE")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = data[: error.start]
        line = before.count(b"\n") + 1
        column = error.start - (before.rfind(b"\n") + 1) + 1
        return Problem(path, line, column, "", f"not UTF-8 text (byte 0x{data[error.start]:02x})", "SB-YAML-ENCODING")
    return text


def _indented_tab(path: str, text: str) -> Problem | None:
    """Tabs in indentation: the parser's own message about them does not say so."""
    for number, line in enumerate(text.split("\n"), start=1):
        indent = line[: len(line) - len(line.lstrip(" \t"))]
        if "\t" in indent and line.strip():
            column = indent.index("\t") + 1
            return Problem(path, number, column, "", "a tab in the indentation: use spaces", "SB-YAML-TAB")
    return None


def _odd_break(path: str, text: str) -> Problem | None:
    found = _ODD_BREAK.search(text)
    if found is None:
        return None
    before = text[: found.start()]
    line, column = before.count("\n") + 1, found.start() - before.rfind("\n")
    message = f"U+{ord(found[0]):04X} ends a line to YAML only: use new lines, in a value an escape in double quotes"
    return Problem(path, line, column, "", message, "SB-YAML-LINE-BREAK")


def too_many(path: str) -> Problem:
    """Stands after the last problem that is told of a document."""
    return Problem(path, 1, 1, "", f"more than {MAX_PROBLEMS:,} problems: the others are not told", "SB-PROBLEMS")


def parse(path: str, data: bytes) -> Document:
    """Parse one file. ``path`` is only used in problems.

    Never raises: a document with problems has ``value`` None where the text
    could not be read to its end.
    """
    text = _decode(path, data)
    if isinstance(text, Problem):
        return Document(path, problems=[text])
    if unclear := _odd_break(path, text) or _indented_tab(path, text):
        return Document(path, problems=[unclear])
    reader = _Reader(path)
    document = reader.document
    try:
        for event in _events(text):
            reader.feed(event)
    except _Stop:
        document.value = None
    except yaml.YAMLError as error:
        document.value = None
        document.problems.append(_syntax(path, error))
    if not document.problems and document.value is None:
        document.problems.append(Problem(path, 1, 1, "", "the file is empty, expected a mapping", "SB-YAML-EMPTY"))
    return document


def _syntax(path: str, error: yaml.YAMLError) -> Problem:
    mark = getattr(error, "problem_mark", None)
    line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
    what = getattr(error, "problem", None) or getattr(error, "reason", None) or "cannot be read"
    return Problem(path, line, column, "", f"not valid YAML: {ascii(str(what))[1:-1]}", "SB-YAML-SYNTAX")

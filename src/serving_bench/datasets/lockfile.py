"""Changing one entry of the dataset lock as text, so that comments, order and style of all else stay as they are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import yaml

from serving_bench.errors import InputError

Value = str | int
_TOP = "datasets"


def with_entry(text: str, name: str, values: Mapping[str, Value]) -> str:
    """The lock with ``values`` in the entry ``name``, which is added at the end where there is none.

    Keys that the entry has already are changed in their place, others come after
    its last one. ``InputError`` (SB-LOCK-EDIT) where the text is no lock, or is
    written in a way that this cannot change without touching more.
    """
    datasets = _datasets(text)
    entry = _child(datasets, name)
    if entry is None:
        changed = _appended(text, datasets, name, values)
    elif isinstance(entry, yaml.MappingNode) and entry.value:
        changed = _changed(text, entry, values)
    else:
        raise _refusal(f"the entry {name} holds no keys")
    _must_only_differ(text, changed, name, values)
    return changed


def _refusal(why: str) -> InputError:
    return InputError(f"the dataset lock cannot be changed: {why}", code="SB-LOCK-EDIT", hint="change it by hand")


def _datasets(text: str) -> yaml.MappingNode:
    try:
        top = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.YAMLError as error:
        raise _refusal("it is not valid YAML") from error
    found = _child(top, _TOP) if isinstance(top, yaml.MappingNode) else None
    if not isinstance(found, yaml.MappingNode):
        raise _refusal(f"it has no mapping {_TOP}")
    return found


def _child(node: yaml.MappingNode, key: str) -> yaml.Node | None:
    return next((value for name, value in node.value if name.value == key), None)


def _changed(text: str, entry: yaml.MappingNode, values: Mapping[str, Value]) -> str:
    known = {name.value: value for name, value in entry.value}
    missing = {key: value for key, value in values.items() if key not in known}
    places = [(known[key], value) for key, value in values.items() if key in known]
    if any(not isinstance(node, yaml.ScalarNode) for node, _ in places):
        raise _refusal("a value to change is no scalar")
    if missing:
        at, added = _addition(text, entry, missing)
        text = text[:at] + added + text[at:]
    # What was added stands after everything that is changed, and changes go from the end to the beginning.
    for node, value in sorted(places, key=lambda place: -place[0].start_mark.index):
        text = text[: node.start_mark.index] + _scalar(value) + text[node.end_mark.index :]
    return text


def _addition(text: str, mapping: yaml.MappingNode, values: Mapping[str, Value]) -> tuple[int, str]:
    """Where to insert what, so that ``values`` follow the last key of a mapping."""
    if mapping.flow_style:
        return mapping.end_mark.index - 1, "".join(f", {key}: {_scalar(value)}" for key, value in values.items())
    indent = " " * mapping.start_mark.column
    return _inserted(text, mapping, [f"{indent}{key}: {_scalar(value)}" for key, value in values.items()])


def _appended(text: str, datasets: yaml.MappingNode, name: str, values: Mapping[str, Value]) -> str:
    if datasets.flow_style and datasets.value:
        raise _refusal(f"{_TOP} is written in braces")
    outer = "  " if datasets.flow_style else " " * datasets.start_mark.column
    lines = [f"{outer}{name}:", *(f"{outer}  {key}: {_scalar(value)}" for key, value in values.items())]
    if datasets.flow_style:  # {}: the first entry takes its place
        start, end = datasets.start_mark.index, datasets.end_mark.index
        return text[:start].rstrip(" ") + "\n" + "\n".join(lines) + text[end:]
    at, added = _inserted(text, datasets, lines)
    return text[:at] + added + text[at:]


def _inserted(text: str, mapping: yaml.MappingNode, lines: list[str]) -> tuple[int, str]:
    """The place after the line on which a block mapping's last value ends, and ``lines`` as they stand there."""
    newline = "\r\n" if "\r\n" in text else "\n"
    last = _last(mapping)
    found = text.find("\n", last.start_mark.index if last.start_mark.index == len(text) else max(_end(text, last), 0))
    block = "".join(line + newline for line in lines)
    return (len(text), newline + block) if found < 0 else (found + 1, block)


def _last(node: yaml.Node) -> yaml.Node:
    """The innermost value that a block mapping or sequence ends with."""
    while isinstance(node, yaml.CollectionNode) and node.value and not node.flow_style:
        item = node.value[-1]
        node = item[1] if isinstance(item, tuple) else item
    return node


def _end(text: str, node: yaml.Node) -> int:
    """Index of the last character of a node; a block scalar's end mark lies on the line after it."""
    return len(text[: node.end_mark.index].rstrip()) - 1


def _scalar(value: Value) -> str:
    """A value as YAML text on one line, quoted where it would be read as something else."""
    plain = str(value)
    if isinstance(value, int):
        return plain
    try:
        same = yaml.safe_load(f"[{plain}]") == [value] and yaml.safe_load(f"a: {plain}") == {"a": value}
    except yaml.YAMLError:
        same = False
    if same and "\n" not in plain:
        return plain
    return '"' + plain.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _must_only_differ(before: str, after: str, name: str, values: Mapping[str, Value]) -> None:
    """The change is what was meant, and nothing else changed."""
    wanted: dict[str, Any] = yaml.safe_load(before)
    wanted[_TOP][name] = {**wanted[_TOP].get(name, {}), **values}
    try:
        found = yaml.safe_load(after)
    except yaml.YAMLError as error:
        raise _refusal("the result would not be valid YAML") from error
    if found != wanted:
        raise _refusal("more would change than is meant")

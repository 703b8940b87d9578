"""From a parsed document to a model: pydantic's findings become problems with a place."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from typing import Any, TypeVar, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from serving_bench.config.strictyaml import MAX_PROBLEMS, Document, Key, shorten, too_many
from serving_bench.errors import Problem

ModelT = TypeVar("ModelT", bound=BaseModel)

_CODES = {
    "extra_forbidden": "SB-KEY-UNKNOWN",
    "missing": "SB-KEY-MISSING",
    "literal_error": "SB-VALUE",
    "value_error": "SB-VALUE",
    "string_pattern_mismatch": "SB-VALUE",
}
_RANGE = re.compile(r"greater_than|less_than|too_short|too_long|finite_number")


def validate(document: Document, kind: type[ModelT]) -> ModelT | None:
    """The model, or None with the problems added to the document."""
    if document.value is None or document.problems:
        return None
    try:
        return kind.model_validate(document.value)
    except ValidationError as error:
        document.problems += _problems(document, kind, error.errors(include_url=False))
        return None


def _problems(document: Document, kind: type[BaseModel], errors: Sequence[ErrorDetails]) -> list[Problem]:
    found = {_problem(document, kind, details) for details in errors[:MAX_PROBLEMS]}
    return sorted(found) + ([too_many(document.path)] if len(errors) > MAX_PROBLEMS else [])


def _problem(document: Document, kind: type[BaseModel], details: ErrorDetails) -> Problem:
    key = _key(document, details)
    code = _CODES.get(details["type"]) or ("SB-RANGE" if _RANGE.search(details["type"]) else "SB-TYPE")
    if details["type"] == "missing":
        return document.problem(key, "the key is missing", code)
    if details["type"] == "extra_forbidden":
        return document.problem(key, _unknown(kind, key), code, at_key=True)
    expected = _expected(details)
    quotes = ": put it in quotes" if details["type"] == "string_type" and _is_scalar(details["input"]) else ""
    return document.problem(key, f"{expected}, found {shorten(details['input'])}{quotes}", code)


def _is_scalar(value: object) -> bool:
    return isinstance(value, bool | int | float)


_WORDING = {
    "model_type": "expected a mapping",
    "dict_type": "expected a mapping",
    "list_type": "expected a list",
    "string_type": "expected a string",
    "int_type": "expected a whole number",
    "float_type": "expected a number",
    "bool_type": "expected true or false",
    "union_tag_not_found": "expected a list of numbers, or a mapping with from, to and step",
}


def _expected(details: ErrorDetails) -> str:
    context = details.get("ctx", {})
    kind = details["type"]
    if kind in _WORDING:
        return _WORDING[kind]
    if kind == "string_pattern_mismatch":
        return f"expected a string of the form {context['pattern']}"
    if kind == "too_short":
        return (
            f"expected at least {context['min_length']} entries" if context["min_length"] > 1 else "expected an entry"
        )
    if kind == "too_long":
        return f"expected at most {context['max_length']} entries"
    if kind in ("string_too_short", "string_too_long"):
        return f"expected a string with {context.get('min_length', 0) or 'at most'} " + (
            "character or more" if "min_length" in context else f"{context['max_length']} characters"
        )
    message = details["msg"].removeprefix("Value error, ").removeprefix("Input should be ")
    return f"expected {'a number ' if kind.startswith(('greater', 'less')) else ''}{message}"


def _key(document: Document, details: ErrorDetails) -> Key:
    """Pydantic's location without the parts that name no place of the file, such as a union's branch.

    A missing key has no place: it is kept, below the mapping that it is missing in.
    """
    loc = [part for part in details["loc"] if part != "[key]"]
    key: Key = ()
    for number, part in enumerate(loc, start=1):
        if (*key, part) in document.places or (number == len(loc) and details["type"] == "missing"):
            key = (*key, part)
    return key


def _unknown(kind: type[BaseModel], key: Key) -> str:
    """Names what is allowed beside the unknown key, the likeliest first."""
    model = _model_in(_annotation(kind, key[:-1]))
    allowed = [field.alias or name for name, field in model.model_fields.items()] if model else []
    close = difflib.get_close_matches(str(key[-1]), allowed, n=1)
    meant = f"unknown key, did you mean {close[0]}? Allowed" if close else "unknown key, allowed"
    return f"{meant}: {', '.join(allowed)}"


def _annotation(annotation: Any, key: Key) -> Any:
    """The type annotation of the value at ``key`` below ``annotation``."""
    for part in key:
        annotation = _step(annotation, str(part))
    return annotation


def _step(annotation: Any, part: str) -> Any:
    """The annotation one key or list position further in."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        named = {field.alias or name: field.annotation for name, field in annotation.model_fields.items()}
        return named.get(part)
    if get_origin(annotation) in (dict, list):
        return get_args(annotation)[-1]
    return next((found for inner in get_args(annotation) if (found := _step(inner, part)) is not None), None)


def _model_in(annotation: Any) -> type[BaseModel] | None:
    """The model class of an annotation such as ``Model | None``."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    if get_origin(annotation) in (dict, list):
        return None
    return next((found for inner in get_args(annotation) if (found := _model_in(inner)) is not None), None)

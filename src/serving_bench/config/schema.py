"""JSON Schemas of the YAML files, for editors: made from the models, so that they accept the same.

What a schema cannot say (rules over several values or files, YAML's own
pitfalls) is left to ``serving-bench render --check``.
"""

from __future__ import annotations

import ast
import copy
import inspect
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel

from serving_bench.config import models
from serving_bench.config.models import ClustersYaml, DatasetsYaml, ScenariosYaml, ServingYaml

SCHEMAS: Mapping[str, type[BaseModel]] = {
    "serving.schema.json": ServingYaml,
    "clusters.schema.json": ClustersYaml,
    "scenarios.schema.json": ScenariosYaml,
    "datasets.lock.schema.json": DatasetsYaml,
}
"""File name → model of the document that it describes."""

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def schema_of(kind: type[BaseModel]) -> dict[str, Any]:
    """The schema of a document, with the models' docstrings as descriptions."""
    schema = kind.model_json_schema(mode="validation", by_alias=True)
    described = _docstrings()
    _describe(schema, kind.__name__, described)
    for name, inner in schema.get("$defs", {}).items():
        _describe(inner, name, described)
    _close(schema)
    if kind is ServingYaml:
        schema = _with_variants(schema)
    return {"$schema": DIALECT, **schema}


def _close(schema: Any) -> None:
    """Mappings whose keys follow a pattern allow no other keys."""
    inside = schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else ()
    if isinstance(schema, dict) and "patternProperties" in schema:
        schema["additionalProperties"] = False
    for inner in inside:
        _close(inner)


def _with_variants(schema: dict[str, Any]) -> dict[str, Any]:
    """A config that extends another may leave out what the other one has to say."""
    definitions = schema.pop("$defs")
    variant = copy.deepcopy(schema)
    del variant["required"]
    router = copy.deepcopy(definitions["RouterYaml"])
    del router["required"]
    variant["properties"]["router"] = {"anyOf": [{"$ref": "#/$defs/RouterVariant"}, {"type": "null"}]}
    return {
        "$defs": {**definitions, "Config": schema, "Variant": variant, "RouterVariant": router},
        "if": {"type": "object", "required": ["extends"], "properties": {"extends": {"type": "string"}}},
        "then": {"$ref": "#/$defs/Variant"},
        "else": {"$ref": "#/$defs/Config"},
    }


def _describe(schema: dict[str, Any], model: str, described: Mapping[tuple[str, str], str]) -> None:
    schema.pop("title", None)
    for key, field in schema.get("properties", {}).items():
        field.pop("title", None)
        text = described.get((model, key.replace("-", "_").replace("from", "from_")))
        if text:
            field["description"] = text


def _docstrings() -> dict[tuple[str, str], str]:
    """(model, field) → the string that stands below the field in the models' source."""
    found = {}
    for node in ast.parse(inspect.getsource(models)).body:
        if not isinstance(node, ast.ClassDef):
            continue
        for before, after in zip(node.body, node.body[1:], strict=False):
            if (
                isinstance(before, ast.AnnAssign)
                and isinstance(before.target, ast.Name)
                and isinstance(after, ast.Expr)
                and isinstance(after.value, ast.Constant)
            ):
                found[node.name, before.target.id] = inspect.cleandoc(str(after.value.value)).replace("\n", " ")
    return found

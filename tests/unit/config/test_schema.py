"""The committed schemas are those of the models, and both accept the same documents."""

from __future__ import annotations

import copy
import json
import re
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]
from pydantic import BaseModel

from serving_bench.config.layers import layer
from serving_bench.config.models import ClustersYaml, DatasetsYaml, ScenariosYaml, ServingYaml
from serving_bench.config.schema import SCHEMAS, schema_of
from serving_bench.config.strictyaml import Document, parse
from serving_bench.config.structure import validate
from tests.unit.config.conftest import CLUSTERS, CONFIG, DATASETS, SCENARIOS

ROOT = Path(__file__).resolve().parents[3]
FOLDER = ROOT / "configs" / "schema"

GOOD: dict[type[BaseModel], list[str]] = {
    ServingYaml: [
        CONFIG,
        CONFIG.replace("[96, 150]", "{from: 1, to: 8, step: x2}") + "repeats: 2\nduration-s: 1.5\nevals: [mmlu]\n",
        "extends: x\nrouter: {env: {A: b}}\nslo: {error-rate: 0}\nexpect: {router-log: [a], server-log: []}\n",
        "extends: x\nconc: [1]\ncluster: [a, b]\ntimeouts: {ready-s: 1, point-s: 2.5, stop-s: 3}\ncache: carry\n",
    ],
    ClustersYaml: [CLUSTERS],
    ScenariosYaml: [SCENARIOS + "    warmup: {conversations: 2}\n    streaming: false\n    max-imbalance: 1.5\n"],
    DatasetsYaml: [DATASETS + "    arguments: {a: [1, {b: null}]}\n    bytes: 3\n"],
}


@cache
def validator(kind: type[BaseModel]) -> Draft202012Validator:
    # In ECMA's regular expressions, which JSON Schema means, $ is the very end; in Python's it is not.
    text = json.dumps(schema_of(kind))
    strict = json.loads(re.sub(r'(?<!\\)\$("|\|)', r"\\\\Z\1", text.replace('"$schema"', '"_schema"')))
    Draft202012Validator.check_schema(json.loads(text))
    return Draft202012Validator(strict)


def document(value: Any) -> Document:
    """A value as if it had been read from a file."""
    return parse("x.yaml", json.dumps(value).encode())  # JSON is YAML without its pitfalls


BASE = document(yaml.safe_load(CONFIG))


def model_accepts(kind: type[BaseModel], value: Any) -> bool:
    found = document(value)
    if kind is ServingYaml and isinstance(value, dict) and isinstance(value.get("extends"), str):
        found = layer(BASE, found)
    return validate(found, kind) is not None


@pytest.mark.parametrize("name", SCHEMAS)
def test_the_committed_schema_is_current(name: str) -> None:
    committed = json.loads((FOLDER / name).read_text())
    assert committed == schema_of(SCHEMAS[name]), "run: serving-bench schema --out configs/schema"


def test_every_config_passes_check_jsonschema() -> None:
    tool = Path(sys.executable).with_name("check-jsonschema")
    configs = ROOT / "configs"
    pairs = {
        "serving.schema.json": sorted((configs / "serving").glob("*.yaml")),
        "clusters.schema.json": [configs / "clusters.yaml"],
        "scenarios.schema.json": [configs / "scenarios.yaml"],
        "datasets.lock.schema.json": [configs / "datasets.lock.yaml"],
    }
    assert set(pairs) == set(SCHEMAS)
    for name, files in pairs.items():
        command = [str(tool), "--schemafile", str(FOLDER / name), *map(str, files)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


def test_descriptions_come_from_the_models() -> None:
    schema = schema_of(ServingYaml)["$defs"]["Config"]["properties"]
    assert schema["gpus"]["description"].startswith("GPUs per replica")
    assert schema["extends"]["description"].startswith("Another config")


@pytest.mark.parametrize("kind", GOOD)
def test_both_accept_what_is_right(kind: type[BaseModel]) -> None:
    for text in GOOD[kind]:
        value = yaml.safe_load(text)
        assert model_accepts(kind, value), text
        assert validator(kind).is_valid(value), text


SCALARS = st.sampled_from(
    [None, True, False, 0, 1, -1, 8.0, 1.5, 1000001, 10**9, 1e9, 604800, 604801, "", "a", "x2", "x1", "a b", "a\n",
     "fresh", "docker", "router", "a" * 40, "f" * 64, "A_B", "1A", "é", "x" * 501]
)  # fmt: skip
VALUES = SCALARS | st.lists(SCALARS, max_size=3) | st.dictionaries(st.sampled_from(["a", "from", "to", "A B"]), SCALARS)


@st.composite
def changed(draw: st.DrawFn, kind: type[BaseModel]) -> Any:
    """A right document with up to three changes: another value, one key less, one key more."""
    value = copy.deepcopy(yaml.safe_load(draw(st.sampled_from(GOOD[kind]))))
    for _ in range(draw(st.integers(0, 3))):
        places = list(containers(value))
        where = draw(st.sampled_from(places)) if places else value
        if isinstance(where, dict):
            keys = [*where, "surplus", "runs-on", "conc", "step", "cluster", "replicas"]
            key = draw(st.sampled_from(keys))
            if draw(st.booleans()):
                where[key] = draw(VALUES)
            else:
                where.pop(key, None)
        else:
            where.append(draw(VALUES))
    return value


def containers(value: Any) -> Any:
    """All mappings and lists inside a value."""
    if isinstance(value, dict | list):
        yield value
        for inner in value.values() if isinstance(value, dict) else value:
            yield from containers(inner)


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.sampled_from(sorted(GOOD, key=str)).flatmap(lambda kind: st.tuples(st.just(kind), changed(kind))))
def test_schema_and_models_accept_the_same(case: tuple[type[BaseModel], Any]) -> None:
    kind, value = case
    found = document(value)
    if found.problems:
        return  # YAML's own pitfalls are not for a schema
    accepted = model_accepts(kind, value)
    event("accepted" if accepted else "refused")
    assert validator(kind).is_valid(value) == accepted

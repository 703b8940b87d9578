"""Configs from files to plans: each rule, its code, its place, and that all problems come in one go."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from serving_bench.config.loader import config_paths, load
from serving_bench.config.overrides import Overrides
from serving_bench.config.strictyaml import MAX_PROBLEMS
from serving_bench.contracts import Plan
from serving_bench.errors import ConfigError, InputError, Problem
from tests.unit.config.conftest import CLUSTERS, CONFIG, DATASETS, SCENARIOS

Make = Callable[..., Path]


def errors_in(folder: Path) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        load(folder)
    return [f"{p.path}:{p.line}:{p.column} {p.key} {p.code}" for p in caught.value.problems if p.severity == "error"]


def test_the_right_config_becomes_a_plan(make_configs: Make) -> None:
    (plan,) = load(make_configs()).plans
    assert plan.config == "x"
    assert plan.source == "configs/serving/x.yaml"
    assert plan.engine.kind == "dynamo.vllm"
    assert plan.framework == "vllm"
    assert plan.router_profile == "dynamo"
    assert plan.engine.argv == ("python3", "-m", "dynamo.vllm", "--tensor-parallel-size", "4")
    assert (plan.gpus, plan.replicas, plan.conc) == (4, 2, (96, 150))
    assert plan.model.served_name == "org/model"
    assert plan.slo.ttft_p95_ms == 500
    assert plan.scenario.load.duration_s == 1200
    assert plan.cluster.runs_on == ("self-hosted", "h200")
    assert plan.router is not None
    assert plan.router.image == plan.engine.image, "the router runs in the engine's image unless it has its own"


def edited(old: str, new: str) -> str:
    assert old in CONFIG, old
    return CONFIG.replace(old, new)


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        (edited("python3 -m dynamo.vllm", "python3 -m nothing"), "4:8 serve SB-ENGINE-UNKNOWN"),
        (edited("python3 -m dynamo.frontend", "nginx"), "9:10 router.serve SB-ROUTER-UNKNOWN"),
        (edited("router:\n  serve: python3 -m dynamo.frontend --router-mode kv\n", ""), "1:1  SB-ROUTER-MISSING"),
        (edited("--tensor-parallel-size 4", "--x $HOME"), "4:8 serve SB-COMMAND"),
        (edited("--router-mode kv", "| tee log"), "9:10 router.serve SB-COMMAND"),
        (edited("cluster: node", "cluster: moon"), "13:10 cluster SB-CLUSTER-UNKNOWN"),
        (edited("cluster: node", "cluster: [node, moon]"), "13:17 cluster[1] SB-CLUSTER-UNKNOWN"),
        (edited("cluster: node", "cluster: [node, node]"), "13:17 cluster[1] SB-CLUSTER-REPEATED"),
        (edited("scenario: calls", "scenario: chess"), "11:11 scenario SB-SCENARIO-UNKNOWN"),
        (edited("scenario: calls", "scenario: lost"), "11:11 scenario SB-DATASET-UNKNOWN"),
        (edited("{id: org/model,", "{id: org/model, path: a,"), "3:8 model SB-MODEL"),
        (edited(f"revision: {'c' * 40}", "name: m"), "3:8 model SB-MODEL-REVISION"),
        (edited("[96, 150]", "[96, 96]"), "12:12 conc[1] SB-CONC-REPEATED"),
        (edited("replicas: 2", "replicas: 3"), "6:11 replicas SB-GPUS"),
        (edited("cluster: node", "cluster: bare\n#"), "6:11 replicas SB-GPUS"),
        (edited("0.31.0@sha256", "latest@sha256"), "2:8 image SB-IMAGE-TAG"),
        (edited(f":0.31.0@sha256:{'b' * 64}", ""), "2:8 image SB-IMAGE-TAG"),
        (edited("VLLM_LOGGING_LEVEL: INFO", 'DYN_SYSTEM_PORT: "1"'), "7:24 env.DYN_SYSTEM_PORT SB-OWNED-ENV"),
        (edited("--tensor-parallel-size 4", "--model x"), "4:8 serve SB-OWNED-FLAG"),
        (edited("--router-mode kv", "--http-port=1"), "9:10 router.serve SB-OWNED-FLAG"),
        (edited("slo:", "expect: {router-log: ['(']}\nslo:"), "14:23 expect.router-log[0] SB-PATTERN"),
        (edited("replicas: 2", "replicsa: 2"), "6:1 replicsa SB-KEY-UNKNOWN"),
        (edited("replicas: 2", "replicas: two"), "6:11 replicas SB-TYPE"),
        (edited("replicas: 2", "replicas: 0"), "6:11 replicas SB-RANGE"),
        (edited("serve: python3 -m dynamo.vllm --tensor-parallel-size 4\n", ""), "1:1 serve SB-KEY-MISSING"),
        (edited("conc: [96, 150]", "conc: []"), "12:7 conc SB-RANGE"),
        (edited("slo:", "cache: hot\nslo:"), "14:8 cache SB-VALUE"),
        ("- a\n- b\n", "1:1  SB-TYPE"),
        ("", "1:1  SB-YAML-EMPTY"),
    ],
)
def test_each_rule_has_its_code_and_place(make_configs: Make, config: str, expected: str) -> None:
    assert f"configs/serving/x.yaml:{expected}" in errors_in(make_configs(config))


def test_gpus_of_an_unknown_engine_are_not_counted(make_configs: Make) -> None:
    """Without the key gpus it is not known whether it needs any: only the cause is told."""
    config = edited("python3 -m dynamo.vllm --tensor-parallel-size 4", "python3 -m nothing")
    without = "\n".join(line for line in config.splitlines() if not line.startswith("gpus:"))
    found = errors_in(make_configs(without.replace("cluster: node", "cluster: bare")))
    assert [line.rpartition(" ")[2] for line in found if "GPUS" in line or "ENGINE" in line] == ["SB-ENGINE-UNKNOWN"]


def test_an_image_is_needed_where_containers_run(make_configs: Make) -> None:
    config = "\n".join(line for line in CONFIG.splitlines() if not line.startswith("image:"))
    assert errors_in(make_configs(config)) == ["configs/serving/x.yaml:1:1  SB-IMAGE-MISSING"]


def test_features_of_the_cluster_are_needed(make_configs: Make) -> None:
    clusters = CLUSTERS.replace("features: [router, storage]", "features: []")
    found = errors_in(make_configs(clusters=clusters))
    assert found == [
        "configs/serving/x.yaml:9:3 router SB-CLUSTER-FEATURE",
        "configs/serving/x.yaml:10:10 storage SB-CLUSTER-FEATURE",
    ]


def test_a_tag_without_a_digest_is_a_warning(make_configs: Make) -> None:
    loaded = load(make_configs(edited(f"@sha256:{'b' * 64}", "")))
    assert [(p.code, p.severity, p.line) for p in loaded.warnings] == [("SB-IMAGE-DIGEST", "warning", 2)]
    assert len(loaded.plans) == 1


SERVE = "serve: python3 -m dynamo.vllm --tensor-parallel-size 4"
ROUTER = "router:\n  serve: python3 -m dynamo.frontend --router-mode kv\n"


def served(command: str, *, router: str | None = ROUTER) -> str:
    """The config with another engine command, and another router part or none."""
    return edited(SERVE, f"serve: {command}").replace(ROUTER, router or "")


@pytest.mark.parametrize(
    ("config", "kind", "framework", "profile"),
    [
        (served("python3.12 -m dynamo.vllm -tp 4"), "dynamo.vllm", "vllm", "dynamo"),
        (served("vllm serve -tp=4", router=None), "vllm", "vllm", "none"),
        (served("vllm serve -tp 4", router="router: {serve: sglang-router}\n"), "vllm", "vllm", "sglang-router"),
        (served("/opt/venv/bin/python -m sglang.launch_server --tp 4", router=None), "sglang", "sglang", "none"),
        (served("python3 -m dynamo.sglang --tp-size=2 --pp 2").replace("replicas: 2", "replicas: 1"),
         "dynamo.sglang", "sglang", "dynamo"),
        (served("python3 -m dynamo.trtllm").replace("replicas: 2", "replicas: 1"), "dynamo.trtllm", "trtllm", "dynamo"),
        (served("python3 -m dynamo.mocker --block-size 16"), "dynamo.mocker", "mocker", "dynamo"),
    ],
)  # fmt: skip
def test_every_engine_is_known_by_its_first_words(
    make_configs: Make, config: str, kind: str, framework: str, profile: str
) -> None:
    plan = only_plan(make_configs(config))
    assert (plan.engine.kind, plan.framework, plan.router_profile) == (kind, framework, profile)


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        (served("python3 -m dynamo.sglang --tp 4"), "6:11 replicas SB-REPLICAS-ENGINE"),
        (served("python3 -m dynamo.trtllm --tensor-parallel-size 4"), "6:11 replicas SB-REPLICAS-ENGINE"),
        (served("python3 -m dynamo.vllm -tp 4 --kv-events-config '{}'"), "4:8 serve SB-REPLICAS-EVENTS"),
        (served("python3 -m dynamo.mocker --zmq-kv-events-ports 1"), "4:8 serve SB-REPLICAS-EVENTS"),
        (served("vllm serve -tp 4"), "9:10 router.serve SB-ROUTER-ENGINE"),
        (served("python3 -m dynamo.vllm -tp 4", router="router: {serve: sglang-router}\n"),
         "8:17 router.serve SB-ROUTER-ENGINE"),
        (served("vllm serve org/model -tp 4", router=None), "4:8 serve SB-OWNED-FLAG"),
        (served("vllm serve --port 1 -tp 4", router=None), "4:8 serve SB-OWNED-FLAG"),
        (served("python3 -m dynamo.vllm -tp 4 --served_model_name x"), "4:8 serve SB-OWNED-FLAG"),
        (served("python3 -m dynamo.vllm -tp 2"), "5:7 gpus SB-GPUS-PARALLEL"),
        (served("python3 -m dynamo.vllm"), "5:7 gpus SB-GPUS-PARALLEL"),
        (served("python3 -m dynamo.vllm -tp 2 -pp=2 --data_parallel_size 2"), "5:7 gpus SB-GPUS-PARALLEL"),
        (served("python3 -m dynamo.vllm -tp 4").replace("gpus: 4\n", ""), "4:8 serve SB-GPUS-PARALLEL"),
    ],
)  # fmt: skip
def test_what_an_engine_can_do_comes_from_its_class(make_configs: Make, config: str, expected: str) -> None:
    assert errors_in(make_configs(config)) == [f"configs/serving/x.yaml:{expected}"]


@pytest.mark.parametrize(
    "config",
    [
        served("python3 -m dynamo.vllm --kv-events-config '{}' -tp 4").replace("replicas: 2", "replicas: 1"),
        served("python3 -m dynamo.vllm --config engine.yaml"),
        served("python3 -m dynamo.sglang --tp 4 --dp 4 --enable-dp-attention").replace("replicas: 2", "replicas: 1"),
        served("vllm serve", router=None).replace("gpus: 4", "gpus: 0"),
    ],
)
def test_what_cannot_be_told_or_is_alone_is_no_fault(make_configs: Make, config: str) -> None:
    assert len(load(make_configs(config)).plans) == 1


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        ({"clusters": CLUSTERS.replace("runtime: docker", "runtime: docker\n    nodes: 2")}, "SB-CLUSTER-NODES"),
        ({"scenarios": SCENARIOS.replace("{requests: 10}", "{}")}, "SB-SCENARIO-LOAD"),
        (
            {"scenarios": SCENARIOS + "    warmup: {requests: 1, conversations: 2}\n"},
            "SB-SCENARIO-WARMUP",
        ),
        ({"datasets": DATASETS.replace("path: calls.jsonl", "format: multi_turn")}, "SB-LOCK-SOURCE"),
        ({"datasets": DATASETS + "    generator: voice-agent\n"}, "SB-LOCK-SOURCE"),
        ({"datasets": DATASETS.replace("path: calls.jsonl", "repo: a/b")}, "SB-LOCK-REVISION"),
        ({"datasets": DATASETS.replace("path: calls.jsonl", "generator: magic")}, "SB-LOCK-GENERATOR"),
        ({"datasets": DATASETS + "    rooms-file: rooms.csv\n"}, "SB-LOCK-ROOMS"),
        ({"datasets": "datasets: {}\ndatasets: {}\n"}, "SB-YAML-DUPLICATE-KEY"),
        ({"clusters": "clusters: {'b c': {}}\n"}, "SB-VALUE"),
    ],
)
def test_files_that_configs_refer_to_have_rules_too(make_configs: Make, texts: dict[str, str], expected: str) -> None:
    assert expected in {line.split(" ")[-1] for line in errors_in(make_configs(**texts))}


def test_all_problems_of_all_files_come_in_one_go(make_configs: Make) -> None:
    folder = make_configs(edited("replicas: 2", "replicas: two"), clusters=CLUSTERS + "extra: 1\n")
    (folder / "serving" / "y.yaml").write_bytes(b"\xff\xfe\x00binary")
    (folder / "scenarios.yaml").unlink()
    assert errors_in(folder) == [
        "configs/clusters.yaml:10:1 extra SB-KEY-UNKNOWN",
        "configs/scenarios.yaml:1:1  SB-FILE-MISSING",
        "configs/serving/x.yaml:6:11 replicas SB-TYPE",
        "configs/serving/y.yaml:1:1  SB-YAML-ENCODING",
    ]


def test_lists_of_what_is_known_come_from_the_files(make_configs: Make) -> None:
    with pytest.raises(ConfigError) as caught:
        load(make_configs(edited("cluster: node", "cluster: moon")))
    assert caught.value.problems[0].message == "unknown cluster 'moon', known: bare, node"


def test_several_clusters_give_a_plan_each(make_configs: Make) -> None:
    clusters = CLUSTERS + CLUSTERS.split("clusters:\n")[1].split("  bare:")[0].replace("node:", "node2:")
    plans = load(make_configs(edited("cluster: node", "cluster: [node, node2]"), clusters=clusters)).plans
    assert [plan.cluster.name for plan in plans] == ["node", "node2"]
    assert len({plan.comparability for plan in plans}) == 2
    assert len({plan.workload for plan in plans}) == 1


def only_plan(folder: Path) -> Plan:
    (plan,) = load(folder).plans
    return plan


def test_comparability_ignores_what_people_compare(make_configs: Make) -> None:
    base = only_plan(make_configs())
    for old, new in (
        ("--tensor-parallel-size 4", "--tensor-parallel-size 4 --max-num-seqs 64"),
        ("--router-mode kv", "--router-mode round-robin"),
        ("0.31.0", "0.32.0"),
        ("[96, 150]", "[8]"),
        ("two replicas", "other words"),
    ):
        assert only_plan(make_configs(edited(old, new))).comparability == base.comparability, new


def test_comparability_and_workload_change_with_what_must_be_equal(make_configs: Make) -> None:
    base = only_plan(make_configs())
    other_model = only_plan(make_configs(edited("c" * 40, "d" * 40)))
    assert other_model.comparability != base.comparability
    assert other_model.workload == base.workload
    fewer = only_plan(make_configs(edited("replicas: 2", "replicas: 1")))
    assert fewer.comparability != base.comparability
    for change in (
        {"datasets": DATASETS.replace("a" * 64, "e" * 64)},
        {"scenarios": SCENARIOS.replace("1200", "600")},
        {"scenarios": SCENARIOS.replace("1200}", "1200}\n    seed: 2")},
    ):
        plan = only_plan(make_configs(**change))
        assert plan.workload != base.workload
        assert plan.comparability != base.comparability


def test_the_limits_of_the_verdict_are_not_the_workload(make_configs: Make) -> None:
    base = only_plan(make_configs())
    stricter = only_plan(make_configs(scenarios=SCENARIOS.replace("1200}", "1200}\n    error-rate-limit: 0.5")))
    assert stricter.workload == base.workload


def test_names_pick_configs_and_unknown_ones_are_told(make_configs: Make) -> None:
    folder = make_configs()
    assert config_paths(folder, ["x"]) == [folder / "serving" / "x.yaml"]
    assert config_paths(folder, ["x", "x"]) == [folder / "serving" / "x.yaml"]
    with pytest.raises(InputError, match="unknown config 'z', known: x") as caught:
        config_paths(folder, ["z"])
    assert caught.value.code == "SB-CONFIG-UNKNOWN"


def test_a_file_with_another_ending_is_not_passed_over(make_configs: Make) -> None:
    folder = make_configs()
    (folder / "serving" / "other.yml").write_text(CONFIG)
    assert errors_in(folder) == ["configs/serving/other.yml:1:1  SB-CONFIG-YML"]


def test_a_folder_without_configs_is_told(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        load(tmp_path)
    assert caught.value.code == "SB-CONFIG-NONE"


def test_a_file_that_is_not_there(make_configs: Make) -> None:
    folder = make_configs()
    with pytest.raises(ConfigError) as caught:
        load(folder, [str(folder / "serving" / "gone.yaml")])
    assert [p.code for p in caught.value.problems] == ["SB-FILE-MISSING"]


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=300))
def test_any_bytes_give_a_plan_or_coded_errors_in(make_configs: Make, data: bytes) -> None:
    with pytest.raises(ConfigError) as caught:
        load(make_configs(data))
    assert all(problem.code.startswith("SB-") for problem in caught.value.problems)


LINES = st.lists(
    st.sampled_from(
        [
            *CONFIG.splitlines(),
            "conc: {from: 1}", "conc: [0]", "serve: [a]", "model: null", "env: {A: 1}", "env: &e {A: *e}", "slo: 3",
            "cluster: {a: b}", "cluster: [[node]]", "router: {serve: ''}", "router: x", "replicas: -1", "gpus: 1e9",
            "expect: {router-log: [1]}", "storage: {../x: y}", "timeouts: {ready-s: 0}", "? x", "- y", "a: b: c",
            'description: "\\x00\\u202e::error::%0A"', "image: '@:/'", "cache: on", "scenario: 'a\tb'",
        ]
    ),
    max_size=20,
)  # fmt: skip


@settings(max_examples=250, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(LINES)
def test_nearly_valid_configs_give_a_plan_or_coded_errors_in(make_configs: Make, lines: list[str]) -> None:
    folder = make_configs("\n".join(lines))
    problems: tuple[Problem, ...] = ()
    try:
        load(folder)
    except ConfigError as error:
        problems = error.problems
        event("problems")
    assert all(problem.code.startswith("SB-") for problem in problems)
    assert all(problem.text().isprintable() for problem in problems)


@pytest.mark.parametrize(
    "more",
    [
        "".join(f"serv{n}: 1\n" for n in range(20_000)),
        "storage:\n" + "".join(f"  k {n}: 1\n" for n in range(20_000)),
    ],
)
def test_a_file_full_of_problems_tells_the_first_ones_quickly(make_configs: Make, more: str) -> None:
    config = edited("storage: {model-cache: /mnt/hf}\n", more)
    started = time.process_time()
    errors = errors_in(make_configs(config))
    assert time.process_time() - started < 2
    assert len(errors) <= MAX_PROBLEMS + 1
    assert any(error.endswith("SB-PROBLEMS") for error in errors)


def test_a_variant_of_a_large_config_is_read_quickly(make_configs: Make) -> None:
    """Laying one over the other takes time in proportion to both, not to their product."""
    folder = make_configs("".join(f"k{n}: 1\n" for n in range(20_000)))
    (folder / "serving" / "y.yaml").write_text("extends: x\n" + "".join(f"k{n}: 2\n" for n in range(20_000)))
    started = time.process_time()
    with pytest.raises(ConfigError):
        load(folder, ["y"])
    assert time.process_time() - started < 2


@pytest.mark.parametrize("name", ["a\n::error::b", "a b", "-x", "é", "[a]", "n" * 101])
def test_a_config_whose_file_cannot_be_its_name_is_refused(make_configs: Make, name: str) -> None:
    folder = make_configs()
    (folder / "serving" / f"{name}.yaml").write_text(edited("replicas: 2", "replicas: two"))
    with pytest.raises(ConfigError) as caught:
        load(folder)
    assert {p.path for p in caught.value.problems} == {f"configs/serving/{name}.yaml"}
    assert [p.code for p in caught.value.problems] == ["SB-CONFIG-NAME", "SB-TYPE"]


def test_hidden_files_are_no_configs(make_configs: Make) -> None:
    folder = make_configs()
    (folder / "serving" / ".#x.yaml").symlink_to("someone@host.1234")
    assert [plan.config for plan in load(folder).plans] == ["x"]


@pytest.mark.parametrize("kind", ["pipe", "endless", "folder"])
def test_what_is_no_regular_file_is_not_read(make_configs: Make, kind: str) -> None:
    folder = make_configs()
    path = folder / "serving" / "y.yaml"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "endless":
        path.symlink_to("/dev/zero")
    else:
        path.mkdir()
    assert errors_in(folder) == ["configs/serving/y.yaml:1:1  SB-FILE-READ"]


def test_a_file_has_one_name_however_it_is_written(make_configs: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = make_configs()
    monkeypatch.chdir(folder.parent)
    names = ["x", "configs/serving/x.yaml", "./configs/serving/../serving/x.yaml"]
    assert config_paths(folder, names) == [folder / "serving" / "x.yaml"]


def test_a_benchmark_stands_once_among_the_evals(make_configs: Make) -> None:
    assert errors_in(make_configs(CONFIG + "evals: [gsm8k, aime24, gsm8k]\n")) == [
        "configs/serving/x.yaml:15:24 evals[2] SB-EVALS-REPEATED"
    ]


@pytest.mark.parametrize(("step", "code"), [("x1", "SB-VALUE"), ("0", "SB-RANGE"), ("[2]", "SB-TYPE")])
def test_a_wrong_step_is_one_problem(make_configs: Make, step: str, code: str) -> None:
    config = edited("conc: [96, 150]", f"conc: {{from: 1, to: 8, step: {step}}}")
    assert errors_in(make_configs(config)) == [f"configs/serving/x.yaml:12:30 conc.step {code}"]


@pytest.mark.parametrize("conc", ["\u0663", "\u0663:\u0665", "1:8:x\u0662", "\u00b2"])
def test_digits_of_the_command_line_are_those_of_yaml(make_configs: Make, conc: str) -> None:
    with pytest.raises(ConfigError):
        load(make_configs(), overrides=Overrides(conc=conc))


def test_extends_of_something_else_than_a_name_is_the_only_problem(make_configs: Make) -> None:
    assert errors_in(make_configs("extends: [a]\n")) == ["configs/serving/x.yaml:1:10 extends SB-TYPE"]

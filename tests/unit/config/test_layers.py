"""``extends``, overrides, ranges: what holds in the end, and where it came from."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from serving_bench.config.inventory import Entry, explain, inventory
from serving_bench.config.loader import load
from serving_bench.config.overrides import Overrides
from serving_bench.contracts import Plan
from serving_bench.errors import ConfigError, InputError
from tests.unit.config.conftest import CONFIG

Make = Callable[..., Path]


def with_files(folder: Path, **texts: str) -> Path:
    for name, text in texts.items():
        (folder / "serving" / f"{name}.yaml").write_text(text)
    return folder


def plan_of(folder: Path, name: str, overrides: Overrides | None = None) -> Plan:
    (plan,) = load(folder, [name], overrides or Overrides()).plans
    return plan


def errors_in(folder: Path, name: str, overrides: Overrides | None = None) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        load(folder, [name], overrides or Overrides())
    return [problem.text() for problem in caught.value.problems if problem.severity == "error"]


def test_a_variant_is_three_lines_long(make_configs: Make) -> None:
    folder = with_files(
        make_configs(),
        v="extends: x\nrouter:\n  serve: python3 -m dynamo.frontend --router-mode round-robin\n",
    )
    base, variant = plan_of(folder, "x"), plan_of(folder, "v")
    changed = {name for name in type(base).model_fields if getattr(base, name) != getattr(variant, name)}
    assert changed == {"config", "source", "router"}
    assert variant.router is not None
    assert variant.router.argv[-1] == "round-robin"


def test_mappings_merge_and_lists_and_models_are_replaced(make_configs: Make) -> None:
    child = "extends: x\nenv: {B: two}\nmodel: {path: local}\nconc: [1]\nslo: {error-rate: 0.5}\n"
    plan = plan_of(with_files(make_configs(), v=child), "v")
    assert plan.engine.env == {"VLLM_LOGGING_LEVEL": "INFO", "B": "two"}
    assert (plan.model.path, plan.model.id) == ("local", None)
    assert plan.conc == (1,)
    assert (plan.slo.ttft_p95_ms, plan.slo.error_rate) == (500, 0.5)


def test_null_takes_a_key_away(make_configs: Make) -> None:
    child = "extends: x\nserve: vllm serve -tp 4\nrouter: null\n"
    assert plan_of(with_files(make_configs(), v=child), "v").router is None


def test_an_error_shows_both_files(make_configs: Make) -> None:
    folder = with_files(make_configs(CONFIG.replace("replicas: 2", "replicas: 1")), v="extends: x\ncluster: bare\n")
    assert errors_in(folder, "v") == [
        (
            "configs/serving/x.yaml:6:11: replicas: 1 x 4 GPUs do not fit cluster bare with 0"
            " (used by configs/serving/v.yaml) [SB-GPUS]"
        ),
        (
            "configs/serving/x.yaml:9:3: router: cluster bare does not list the feature router, it lists: none"
            " (used by configs/serving/v.yaml) [SB-CLUSTER-FEATURE]"
        ),
        (
            "configs/serving/x.yaml:10:10: storage: cluster bare does not list the feature storage, it lists: none"
            " (used by configs/serving/v.yaml) [SB-CLUSTER-FEATURE]"
        ),
    ]


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        ({"v": "extends: v\n"}, "configs/serving/v.yaml:1:10: extends: a config cannot extend itself [SB-EXTENDS]"),
        (
            {"v": "extends: z\n", "z": "conc: [1]\nextends: v\n"},
            (
                "configs/serving/v.yaml:1:10: extends: configs/serving/z.yaml extends another config itself"
                " (configs/serving/z.yaml:2:10): one level is allowed [SB-EXTENDS-LEVELS]"
            ),
        ),
        (
            {"v": "extends: gone\n"},
            "configs/serving/v.yaml:1:10: extends: there is no config 'gone' to extend [SB-EXTENDS-UNKNOWN]",
        ),
        (
            {"v": "extends: ../../secret\n"},
            "configs/serving/v.yaml:1:10: extends: there is no config '../../secret' to extend [SB-EXTENDS-UNKNOWN]",
        ),
        (
            {"v": "extends: z\n", "z": "a: [\n"},
            (
                "configs/serving/v.yaml:1:10: extends: the config that it extends has errors:"
                " configs/serving/z.yaml:2:1: not valid YAML: did not find expected node content [SB-YAML-SYNTAX]"
                " [SB-EXTENDS]"
            ),
        ),
    ],
)
def test_one_level_of_files_and_no_cycles(make_configs: Make, texts: dict[str, str], expected: str) -> None:
    assert expected in errors_in(with_files(make_configs(), **texts), "v")


@pytest.mark.parametrize("value", ["[x]", "{a: b}", "3", "null"])
def test_extends_of_another_type_is_an_error_or_nothing(make_configs: Make, value: str) -> None:
    folder = with_files(make_configs(), v=f"extends: {value}\n{CONFIG}")
    if value == "null":
        assert plan_of(folder, "v").config == "v"
    else:
        assert errors_in(folder, "v")[0].endswith("[SB-TYPE]")


@pytest.mark.parametrize(
    ("conc", "expected"),
    [
        ("{from: 8, to: 256, step: x2}", (8, 16, 32, 64, 128, 256)),
        ("{from: 8, to: 256}", (8, 16, 32, 64, 128, 256)),
        ("{from: 4, to: 13, step: 4}", (4, 8, 12)),
        ("{from: 5, to: 5, step: x10}", (5,)),
        ("[3, 1]", (3, 1)),
    ],
)
def test_ranges_are_expanded(make_configs: Make, conc: str, expected: tuple[int, ...]) -> None:
    assert plan_of(make_configs(CONFIG.replace("[96, 150]", conc)), "x").conc == expected


@pytest.mark.parametrize(
    ("conc", "expected"),
    [
        ("{from: 9, to: 8}", "12:7: conc: the range is empty: from is greater than to [SB-CONC-RANGE]"),
        ("{from: 1, to: 1001, step: 1}", "12:7: conc: the range has more than 1000 concurrencies [SB-CONC-RANGE]"),
        ("{from: 0, to: 8}", "12:14: conc.from: expected a number greater than or equal to 1, found 0 [SB-RANGE]"),
        ("{from: 1, to: 8, step: x1}", "12:30: conc.step: "),
        ("{from: 1}", "12:7: conc.to: the key is missing [SB-KEY-MISSING]"),
        ("{from: 1, to: 8, by: 2}", "12:24: conc.by: unknown key, allowed: from, to, step [SB-KEY-UNKNOWN]"),
        ("8", "12:7: conc: expected a list of numbers, or a mapping with from, to and step, found 8 [SB-TYPE]"),
    ],
)
def test_wrong_ranges_are_told(make_configs: Make, conc: str, expected: str) -> None:
    found = errors_in(make_configs(CONFIG.replace("[96, 150]", conc)), "x")
    assert any(line.startswith(f"configs/serving/x.yaml:{expected}") for line in found), found


def test_a_full_range_is_at_most_a_thousand(make_configs: Make) -> None:
    plan = plan_of(make_configs(CONFIG.replace("[96, 150]", "{from: 1, to: 1000, step: 1}")), "x")
    assert plan.conc == tuple(range(1, 1001))


def test_overrides_are_applied_and_recorded(make_configs: Make) -> None:
    image = f"registry.example/vllm:0.32.0@sha256:{'d' * 64}"
    overrides = Overrides(conc="4:16:x2", repeats=3, duration_s=60, cluster=("node",), image=image)
    base, plan = plan_of(make_configs(), "x"), plan_of(make_configs(), "x", overrides)
    assert (plan.conc, plan.repeats, plan.scenario.load.duration_s) == ((4, 8, 16), 3, 60)
    assert plan.engine.image == image
    assert plan.overrides == {"conc": "4:16:x2", "repeats": "3", "duration": "60", "cluster": "node", "image": image}
    assert base.overrides == {}
    assert plan.workload != base.workload, "another duration is another workload"


@pytest.mark.parametrize(
    ("overrides", "expected"),
    [
        (Overrides(conc="4,4"), "--conc: conc[1]: concurrency 4 stands twice [SB-CONC-REPEATED]"),
        (Overrides(conc="4,x"), "--conc: conc[1]: expected a whole number, found 'x' [SB-TYPE]"),
        (Overrides(conc="0"), "--conc: conc[0]: expected a number greater than or equal to 1, found 0 [SB-RANGE]"),
        (Overrides(conc="9:8"), "--conc: conc: the range is empty: from is greater than to [SB-CONC-RANGE]"),
        (Overrides(repeats=0), "--repeats: repeats: expected a number greater than or equal to 1, found 0 [SB-RANGE]"),
        (Overrides(duration_s=-1), "--duration: duration-s: expected a number greater than 0, found -1 [SB-RANGE]"),
        (Overrides(cluster=("moon",)), "--cluster: cluster[0]: unknown cluster 'moon', known: bare, node"),
        (Overrides(image="a:latest"), "--image: image: expected a tag other than latest, or a digest"),
    ],
)
def test_overrides_are_validated_like_the_file(make_configs: Make, overrides: Overrides, expected: str) -> None:
    (found,) = errors_in(make_configs(), "x", overrides)
    assert found.startswith(expected.partition(" [")[0])
    if " [" in expected:
        assert found.endswith(expected.rpartition(" ")[2])


def test_explain_says_where_each_value_comes_from(make_configs: Make) -> None:
    folder = with_files(make_configs(), v="extends: x\nenv: {B: two}\n")
    rows = {row.key: (row.value, row.source) for row in explain(folder, "v", Overrides(repeats=2))}
    assert rows["replicas"] == ("2", "configs/serving/x.yaml:6")
    assert rows["env.VLLM_LOGGING_LEVEL"] == ('"INFO"', "configs/serving/x.yaml:7")
    assert rows["env.B"] == ('"two"', "configs/serving/v.yaml:2")
    assert rows["repeats"] == ("2", "--repeats")
    assert rows["timeouts.ready-s"] == ("1800", "default")
    assert rows["conc"] == ("[96, 150]", "configs/serving/x.yaml:12")


def test_explain_of_a_broken_config_tells_its_problems(make_configs: Make) -> None:
    with pytest.raises(ConfigError):
        explain(make_configs("a: 1\n"), "x")


def test_the_inventory_names_what_configs_refer_to(make_configs: Make) -> None:
    folder = with_files(make_configs(), v="extends: x\nscenario: lost\ncluster: [bare, node]\n", broken="a: [\n")
    found = inventory(folder)
    serving = folder / "serving"
    assert found == {
        "broken": Entry("broken", serving / "broken.yaml", None, None, (), None),
        "x": Entry("x", serving / "x.yaml", None, "calls", ("node",), "calls"),
        "v": Entry("v", serving / "v.yaml", "x", "lost", ("bare", "node"), "nowhere"),
    }


def test_patterns_pick_configs(make_configs: Make) -> None:
    folder = with_files(make_configs(), v1=CONFIG, v2=CONFIG)
    assert [plan.config for plan in load(folder, ["v*"]).plans] == ["v1", "v2"]
    assert [plan.config for plan in load(folder, ["v2", "v?"]).plans] == ["v2", "v1"]
    with pytest.raises(InputError, match="unknown config 'z"):
        load(folder, ["z*"])

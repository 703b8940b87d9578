from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from serving_bench.config.overrides import Overrides
from serving_bench.contracts import Plan
from serving_bench.errors import ConfigError
from serving_bench.files import read_model
from serving_bench.render.step import RenderOptions, run

ROOT = Path(__file__).resolve().parents[3]
DEMO = "demo-2rep-dyn-mocker-kv"


def outputs(path: Path) -> dict[str, str]:
    """Read a GITHUB_OUTPUT file in heredoc form, as the runner does."""
    found = {}
    lines = iter(path.read_text().splitlines())
    for line in lines:
        name, _, delimiter = line.partition("<<")
        body: list[str] = []
        for inner in lines:
            if inner == delimiter:
                break
            body.append(inner)
        found[name] = "\n".join(body)
    return found


def test_plans_matrix_and_outputs_agree(tmp_path: Path) -> None:
    env = {"GITHUB_ACTIONS": "true", "GITHUB_OUTPUT": str(tmp_path / "output")}
    out = io.StringIO()
    run(RenderOptions(ROOT / "configs", (DEMO,), tmp_path / "out"), env, out)
    written = json.loads((tmp_path / "out" / "matrix.json").read_text())
    given = outputs(tmp_path / "output")
    assert json.loads(given["matrix"]) == written
    assert given["count"] == "1"
    plan = read_model(Path(given["plans-path"]) / written["include"][0]["plan"], Plan)
    assert plan.config == DEMO
    assert out.getvalue().startswith(f"{DEMO} voice-agent-demo (54 conversations) c4,8 cluster:hosted-mocker\n")


def test_a_check_writes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run(RenderOptions(ROOT / "configs"), {}, io.StringIO())
    assert list(tmp_path.iterdir()) == []


def test_concurrencies_are_replaced_and_the_hashes_stay(tmp_path: Path) -> None:
    (base,) = run(RenderOptions(ROOT / "configs", (DEMO,)), {}, io.StringIO()).rows
    (row,) = run(RenderOptions(ROOT / "configs", (DEMO,), tmp_path, Overrides(conc="2")), {}, io.StringIO()).rows
    assert (row.plan.conc, row.plan.overrides) == ((2,), {"conc": "2"})
    assert json.loads((tmp_path / "matrix.json").read_text())["include"][0]["conc"] == "2"
    assert (row.plan.comparability, row.plan.workload) == (base.plan.comparability, base.plan.workload)


def test_problems_become_one_annotation_each(tmp_path: Path) -> None:
    folder = tmp_path / "configs"
    (folder / "serving").mkdir(parents=True)
    for name in ("clusters.yaml", "scenarios.yaml", "datasets.lock.yaml"):
        (folder / name).write_text((ROOT / "configs" / name).read_text())
    text = (ROOT / "configs" / "serving" / f"{DEMO}.yaml").read_text()
    hostile = text.replace("cluster: hosted-mocker", 'cluster: "a\\n::error::%0A,b"')
    (folder / "serving" / "a,b.yaml").write_text(hostile)
    out = io.StringIO()
    with pytest.raises(ConfigError):
        run(RenderOptions(folder), {"GITHUB_ACTIONS": "true"}, out)
    (line,) = out.getvalue().splitlines()
    assert line.startswith("::error file=configs/serving/a%2Cb.yaml,line=12,col=10,title=SB-VALUE::cluster: ")
    assert "\\n::error::%250A,b" in line

from __future__ import annotations

import io
import json
import os
from pathlib import Path

import pytest

from serving_bench.config.overrides import Overrides
from serving_bench.contracts import LoadSpec, Mode, Plan, WarmupSpec
from serving_bench.errors import ConfigError, InputError
from serving_bench.files import read_model
from serving_bench.render.step import RenderOptions, run

from .conftest import DEMO, ROOT, Repository


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


def rendered(options: RenderOptions, tmp_path: Path) -> tuple[dict[str, str], str]:
    """Outputs and log of a step on a runner."""
    env = {**os.environ, "GITHUB_ACTIONS": "true", "GITHUB_OUTPUT": str(tmp_path / "output")}
    env["GITHUB_STEP_SUMMARY"] = str(tmp_path / "summary")
    out = io.StringIO()
    run(options, env, out)
    return outputs(tmp_path / "output"), out.getvalue()


def event_file(folder: Path, *labels: str, sha: str) -> Path:
    repo = {"repo": {"full_name": "org/repo"}}
    pull = {"labels": [{"name": name} for name in labels], "head": {"sha": sha, **repo}, "base": repo}
    path = folder / "event.json"
    path.write_text(json.dumps({"action": "synchronize", "pull_request": pull}))
    return path


def test_a_sweep_by_label_with_a_canary(repository: Repository, tmp_path: Path) -> None:
    sha = repository.commit()
    event = event_file(tmp_path, "full-sweep-fail-fast", sha=sha)
    given, log = rendered(RenderOptions(repository.configs, out=tmp_path / "out", event=event), tmp_path)
    (canary,) = json.loads(given["canary"])["include"]
    rows = json.loads(given["matrix"])["include"]
    # All cost no GPU; c has one point of 20 minutes and its start, less than the others.
    assert (canary["id"], canary["conc"], canary["canary"]) == ("c--one", "2", True)
    assert [row["id"] for row in rows] == ["a--one", "b--two"]
    assert (given["count"], given["fail-fast"], given["max-parallel"]) == ("3", "true", "2")
    assert (given["head-sha"], given["reason"]) == (sha, "")
    for row in [canary, *rows]:
        plan = read_model(Path(given["plans-path"]) / row["plan"], Plan)
        assert ",".join(map(str, plan.conc)) == row["conc"]
    assert "::notice title=SB-SWEEP::full-sweep-fail-fast: " in log
    assert "::warning title=SB-MATRIX-PARALLEL::" in log
    assert "SB-SWEEP" in (tmp_path / "summary").read_text()


def test_a_fast_sweep_has_a_row_for_each_concurrency_and_says_so_in_the_plan(
    repository: Repository, tmp_path: Path
) -> None:
    event = event_file(tmp_path, "non-canary-full-sweep-enabled", "agentx-fast", sha=repository.commit())
    options = RenderOptions(repository.configs, ("b",), out=tmp_path / "out", event=event)
    given, log = rendered(options, tmp_path)
    rows = json.loads(given["matrix"])["include"]
    assert [(row["id"], row["conc"]) for row in rows] == [("b--two--c4", "4"), ("b--two--c8", "8")]
    full = run(RenderOptions(repository.configs, ("b",)), {}, io.StringIO()).rows[0].plan
    for row, conc in zip(rows, (4, 8), strict=True):
        plan = read_model(Path(given["plans-path"]) / row["plan"], Plan)
        assert plan.scenario.warmup == WarmupSpec(requests=conc)
        assert plan.scenario.load == LoadSpec(duration_s=1200)
        assert plan.overrides == {"label": "agentx-fast", "warmup-requests": str(conc), "duration": "1200"}
        assert plan.workload != full.workload
        assert plan.comparability != full.comparability
    assert "b large (1200s) c4 cluster:two" in log


def test_a_short_deadline_gives_way_to_the_fast_phase(repository: Repository, tmp_path: Path) -> None:
    repository.write("serving/d.yaml", "extends: a\ncache: carry\ntimeouts: {point-s: 60}\n")
    event = event_file(tmp_path, "full-sweep-enabled", "agentx-fast", sha=repository.commit())
    (row,) = run(RenderOptions(repository.configs, ("d",), event=event), os.environ, io.StringIO()).all()
    assert row.plan.timeouts.point_s == 1800
    assert row.plan.overrides["timeouts.point-s"] == "1800"
    assert row.plan.conc == (4, 8)
    assert row.plan.scenario.warmup == WarmupSpec(requests=8)


def test_accuracy_only_leaves_out_configs_without(repository: Repository, tmp_path: Path) -> None:
    repository.write("serving/d.yaml", "extends: a\nevals: [gsm8k]\n")
    event = event_file(tmp_path, "full-sweep-enabled", "evals-only", sha=repository.commit())
    given, log = rendered(RenderOptions(repository.configs, out=tmp_path / "out", event=event), tmp_path)
    (row,) = json.loads(given["matrix"])["include"]
    assert (row["id"], row["mode"]) == ("d--one", "evals")
    plan = read_model(Path(given["plans-path"]) / row["plan"], Plan)
    assert (plan.mode, plan.evals) == (Mode.EVALS, ("gsm8k",))
    assert "SB-NO-EVALS::without evals, and so left out of a sweep of accuracy only: a, b, c" in log


def test_accuracy_beside_load(repository: Repository, tmp_path: Path) -> None:
    repository.write("serving/d.yaml", "extends: a\nevals: [gsm8k]\n")
    event = event_file(tmp_path, "non-canary-full-sweep-enabled", "all-evals", sha=repository.commit())
    rows = run(RenderOptions(repository.configs, event=event), os.environ, io.StringIO()).rows
    assert {row.id: row.plan.mode.value for row in rows} == {
        "a--one": "performance",
        "b--two": "performance",
        "c--one": "performance",
        "d--one": "both",
    }


@pytest.mark.parametrize(
    ("labels", "changed_from", "code"),
    [((), None, "SB-SWEEP-NO-LABEL"), (("full-sweep-enabled",), "main", "SB-NOTHING-CHANGED")],
)
def test_an_empty_matrix_says_why(
    repository: Repository, tmp_path: Path, labels: tuple[str, ...], changed_from: str | None, code: str
) -> None:
    event = event_file(tmp_path, *labels, sha=repository.commit())
    options = RenderOptions(repository.configs, out=tmp_path / "out", event=event, changed_from=changed_from)
    given, log = rendered(options, tmp_path)
    assert (given["count"], given["matrix"], given["canary"]) == ("0", '{"include":[]}', "")
    assert given["reason"]
    assert f"::notice title={code}::" in log
    assert code in (tmp_path / "summary").read_text()


def test_problems_are_found_although_no_label_is_set(repository: Repository, tmp_path: Path) -> None:
    repository.replace("serving/b.yaml", "scenario: chats", "scenario: nothing")
    event = event_file(tmp_path, sha=repository.commit())
    with pytest.raises(ConfigError):
        run(RenderOptions(repository.configs, event=event), os.environ, io.StringIO())


def test_json_has_the_notices_and_nothing_else_stands_beside_it(repository: Repository, tmp_path: Path) -> None:
    event = event_file(tmp_path, sha=repository.commit())
    out = io.StringIO()
    run(RenderOptions(repository.configs, event=event, json_format=True), {**os.environ, "GITHUB_ACTIONS": "true"}, out)
    found = json.loads(out.getvalue())
    assert [notice["code"] for notice in found["notices"]] == ["SB-SWEEP-NO-LABEL"]


def test_hostile_names_stay_one_line(repository: Repository, tmp_path: Path) -> None:
    event = json.loads(event_file(tmp_path, sha=repository.commit()).read_text())
    event |= {"action": "labeled", "label": {"name": "x\n::error::a%0A`|<script>"}}
    (tmp_path / "event.json").write_text(json.dumps(event))
    options = RenderOptions(repository.configs, out=tmp_path / "out", event=tmp_path / "event.json")
    given, log = rendered(options, tmp_path)
    assert "\n::error" not in log
    assert "\n" not in given["reason"]
    assert (tmp_path / "summary").read_text().count("`") % 2 == 0


def test_a_check_of_more_rows_than_a_matrix_holds_is_a_warning(repository: Repository, tmp_path: Path) -> None:
    for number in range(1500):
        repository.write(f"serving/{'n' * 60}{number}.yaml", "extends: a\nconc: [2]\n")
    out, notes = io.StringIO(), io.StringIO()
    run(RenderOptions(repository.configs), {}, out, notes)
    assert len(out.getvalue().splitlines()) == 1503
    assert "[SB-MATRIX-SIZE]" in notes.getvalue()
    with pytest.raises(InputError) as caught:
        run(RenderOptions(repository.configs, out=tmp_path / "out"), {}, io.StringIO())
    assert caught.value.code == "SB-MATRIX-SIZE"
    assert not (tmp_path / "out").exists()


def test_the_line_of_the_production_config() -> None:
    out = io.StringIO()
    run(RenderOptions(ROOT / "tests" / "data" / "livekit-configs"), {}, out)
    (line,) = [line for line in out.getvalue().splitlines() if not line.startswith("warning: ")]
    assert line == (
        "gemma4-livekit-2tp4-dyn-vllm-prod custom-agentic-livekit111868-v1.1-warm (1200s) c96,150 cluster:hcm-hgx02"
    )


class _Gone(io.StringIO):
    """The reader of a pipe that has gone, as ``| head`` does."""

    def write(self, _text: str) -> int:
        raise BrokenPipeError


def test_what_is_written_does_not_wait_for_a_reader(tmp_path: Path) -> None:
    env = {"GITHUB_OUTPUT": str(tmp_path / "output")}
    with pytest.raises(BrokenPipeError):
        run(RenderOptions(ROOT / "configs", (DEMO,), tmp_path / "out"), env, _Gone())
    assert len(json.loads((tmp_path / "out" / "matrix.json").read_text())["include"]) == 1
    assert outputs(tmp_path / "output")["count"] == "1"


def test_rows_that_cannot_be_written_are_not_told(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("a file stands where the folder should")
    out = io.StringIO()
    with pytest.raises(InputError) as caught:
        run(RenderOptions(ROOT / "configs", (DEMO,), tmp_path / "out"), {}, out)
    assert (caught.value.code, out.getvalue()) == ("SB-FILE-WRITE", "")


def test_the_name_of_a_config_is_no_command_to_the_runner(tmp_path: Path) -> None:
    folder = tmp_path / "configs"
    (folder / "serving").mkdir(parents=True)
    for name in ("clusters.yaml", "scenarios.yaml", "datasets.lock.yaml"):
        (folder / name).write_text((ROOT / "configs" / name).read_text())
    text = (ROOT / "configs" / "serving" / f"{DEMO}.yaml").read_text()
    (folder / "serving" / "a##[error]b.yaml").write_text(text)
    out = io.StringIO()
    run(RenderOptions(folder), {"GITHUB_ACTIONS": "true"}, out)
    assert "##[" not in out.getvalue()
    assert out.getvalue().startswith("a##\u200b[error]b voice-agent-demo ")

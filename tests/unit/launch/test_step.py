"""What the launch step refuses before anything is started, and where its scratch folder lies."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from serving_bench.contracts import ClusterSpec, Mode, Plan, ProcessSpec, Runtime
from serving_bench.errors import InputError
from serving_bench.files import write_model
from serving_bench.launch.step import LaunchOptions, _make_scratch, run

DOCKER = ClusterSpec(name="there", runs_on=("x",), runtime=Runtime.DOCKER)


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"cluster": DOCKER}, "SB-PLAN-RUNTIME"),
        ({"engine": ProcessSpec(kind="sglang", argv=("x",))}, "SB-PLAN-ENGINE"),
        ({"router": None}, "SB-PLAN-ROUTER"),
        ({"mode": Mode.EVALS, "evals": ("gsm8k",)}, "SB-PLAN-EVALS"),
        ({"mode": Mode.BOTH, "evals": ("gsm8k",)}, "SB-PLAN-EVALS"),
    ],
)
def test_a_plan_that_cannot_run_here_leaves_no_trace(
    make_plan: Callable[..., Plan], tmp_path: Path, changes: dict[str, Any], code: str
) -> None:
    write_model(tmp_path / "plan.json", make_plan(**changes))
    with pytest.raises(InputError) as caught:
        run(LaunchOptions(tmp_path / "plan.json", tmp_path / "out", tmp_path), {}, io.StringIO())
    assert caught.value.code == code
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(("content", "code"), [(b"{", "SB-JSON-SYNTAX"), (b"{}", "SB-CONTRACT")])
def test_a_file_that_is_no_plan(tmp_path: Path, content: bytes, code: str) -> None:
    (tmp_path / "plan.json").write_bytes(content)
    with pytest.raises(InputError) as caught:
        run(LaunchOptions(tmp_path / "plan.json", tmp_path / "out", tmp_path), {}, io.StringIO())
    assert caught.value.code == code


def test_scratch_is_private_and_its_path_short() -> None:
    for env in ({}, {"TMPDIR": "/tmp"}, {"TMPDIR": "/a/folder/that/leaves/no/room/for/sockets"}):
        folder = _make_scratch(env)
        assert folder.parent == Path("/tmp")
        assert folder.stat().st_mode & 0o777 == 0o700
        folder.rmdir()

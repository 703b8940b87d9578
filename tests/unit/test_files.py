from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from serving_bench import files
from serving_bench.contracts import Outcome, RunStatus, Stage
from serving_bench.errors import InputError

STATUS = RunStatus(outcome=Outcome.RUNNING, stage=Stage.PLANNED, started_ns=1, updated_ns=2)


def test_a_model_comes_back(tmp_path: Path) -> None:
    files.write_model(tmp_path / "deep" / "status.json", STATUS)
    assert files.read_model(tmp_path / "deep" / "status.json", RunStatus) == STATUS


def test_a_write_leaves_no_temporary_file_and_keeps_the_umask(tmp_path: Path) -> None:
    old = os.umask(0o027)
    try:
        files.write_atomic(tmp_path / "x", "1")
        files.write_atomic(tmp_path / "x", "2")
    finally:
        os.umask(old)
    assert [path.name for path in tmp_path.iterdir()] == ["x"]
    assert (tmp_path / "x").read_text() == "2"
    assert (tmp_path / "x").stat().st_mode & 0o777 == 0o640


def test_a_failed_write_keeps_the_old_content(tmp_path: Path) -> None:
    (tmp_path / "x").mkdir()
    with pytest.raises(InputError) as caught:
        files.write_atomic(tmp_path / "x", "1")
    assert caught.value.code == "SB-FILE-WRITE"
    assert [path.name for path in tmp_path.iterdir()] == ["x"]


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (None, "SB-FILE-MISSING"),
        (b"", "SB-JSON-SYNTAX"),
        (b"\xff\x00", "SB-JSON-SYNTAX"),
        (b"[" * 100_000, "SB-JSON-SYNTAX"),
        (b"[]", "SB-CONTRACT"),
        (json.dumps({**STATUS.model_dump(mode="json"), "schema_version": 2}).encode(), "SB-CONTRACT"),
        (json.dumps({**STATUS.model_dump(mode="json"), "extra": 2}).encode(), "SB-CONTRACT"),
    ],
)
def test_what_is_no_contract_is_told(tmp_path: Path, content: bytes | None, code: str) -> None:
    path = tmp_path / "status.json"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InputError) as caught:
        files.read_model(path, RunStatus)
    assert caught.value.code == code
    assert str(path) in caught.value.message


def test_nan_is_never_written() -> None:
    with pytest.raises(ValueError, match="Out of range"):
        files.dump_json({"a": float("nan")})

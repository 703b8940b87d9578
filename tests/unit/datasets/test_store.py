from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from serving_bench.contracts import DatasetSpec
from serving_bench.datasets.store import materialize
from serving_bench.errors import InputError


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def local(tmp_path: Path, data: bytes = b"{}\n", rooms: bytes = b"a,b,c\n") -> DatasetSpec:
    (tmp_path / "calls.jsonl").write_bytes(data)
    (tmp_path / "rooms.csv").write_bytes(rooms)
    return DatasetSpec(
        id="calls", format="multi_turn", path="calls.jsonl", sha256=digest(b"{}\n"),
        rooms_file="rooms.csv", rooms_sha256=digest(b"a,b,c\n"),
    )  # fmt: skip


def test_a_local_file_is_used_where_it_lies(tmp_path: Path) -> None:
    found = materialize(local(tmp_path), tmp_path, tmp_path / "made")
    assert found.conversations == tmp_path / "calls.jsonl"
    assert found.rooms == tmp_path / "rooms.csv"
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize("changed", [{"data": b"{ }\n"}, {"rooms": b"a,b,d\n"}])
def test_other_content_than_locked_is_refused(tmp_path: Path, changed: dict[str, bytes]) -> None:
    with pytest.raises(InputError) as caught:
        materialize(local(tmp_path, **changed), tmp_path, tmp_path)
    assert caught.value.code == "SB-DATASET-DIGEST"


def test_a_missing_file_is_told(tmp_path: Path) -> None:
    spec = local(tmp_path)
    (tmp_path / "calls.jsonl").unlink()
    with pytest.raises(InputError) as caught:
        materialize(spec, tmp_path, tmp_path)
    assert caught.value.code == "SB-FILE-MISSING"


def test_a_generated_dataset_is_checked_before_it_is_written(tmp_path: Path) -> None:
    spec = DatasetSpec(id="g", format="multi_turn", generator="voice-agent", arguments={"rooms": 2}, sha256="0" * 64)
    with pytest.raises(InputError) as caught:
        materialize(spec, tmp_path, tmp_path / "made")
    assert caught.value.code == "SB-DATASET-DIGEST"
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize("size", [2, 4])
def test_another_size_than_locked_is_told(tmp_path: Path, size: int) -> None:
    spec = local(tmp_path).model_copy(update={"bytes": size})
    with pytest.raises(InputError, match="bytes") as caught:
        materialize(spec, tmp_path, tmp_path)
    assert caught.value.code == "SB-DATASET-DIGEST"

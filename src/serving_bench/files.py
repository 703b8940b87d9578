"""Reading and writing files: atomic writes, JSON without NaN, contract models."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import stat
import tempfile
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from serving_bench.errors import InputError

ModelT = TypeVar("ModelT", bound=BaseModel)


def write_atomic(path: Path, data: bytes | str) -> None:
    """Write so that readers see the old content or the new one, never a part.

    Raises ``InputError`` (SB-FILE-WRITE) where the folder cannot be written.
    """
    # A path or log may hold bytes that are no UTF-8; Python keeps them as lone surrogates, which no file can
    # hold. Written as \udcXX they are what JSON has for them, and visible anywhere else.
    raw = data.encode(errors="backslashreplace") if isinstance(data, str) else data
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(handle, "wb") as out:
                out.write(raw)
            os.chmod(temporary, 0o666 & ~_umask())  # noqa: PTH101  mkstemp's 0600 would shut other readers out
            os.replace(temporary, path)  # noqa: PTH105  the atomic step, named as the system calls it
        except BaseException:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(temporary)  # noqa: PTH108
            raise
    except OSError as error:
        raise InputError(
            f"{path}: cannot be written: {error.strerror or error}",
            code="SB-FILE-WRITE",
            hint="give a folder that this user may write and that has room",
        ) from error


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current


def dump_json(value: Any) -> str:
    """JSON with a final newline; NaN and infinities raise ``ValueError``."""
    return json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def write_model(path: Path, model: BaseModel) -> None:
    """Write a contract model as JSON, atomically."""
    write_atomic(path, dump_json(model.model_dump(mode="json", by_alias=True)))


def read_bytes(path: Path) -> bytes:
    """The file's bytes, or ``InputError`` (SB-FILE-MISSING, SB-FILE-READ)."""
    try:
        return path.read_bytes()
    except FileNotFoundError as error:
        raise InputError(f"{path}: no such file", code="SB-FILE-MISSING", hint="check the path") from error
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}", code="SB-FILE-READ") from error


def read_regular(path: Path, most: int | None = None) -> bytes:
    """As ``read_bytes``, of a regular file only: a device or a pipe could have no end, or never begin.

    Of a file with more than ``most`` bytes one byte more than that is read, so that the caller can tell.
    """
    try:
        with open(path, "rb", opener=_without_waiting) as source:
            if not stat.S_ISREG(os.fstat(source.fileno()).st_mode):
                raise InputError(f"{path}: no regular file", code="SB-FILE-READ")
            return source.read() if most is None else source.read(most + 1)
    except FileNotFoundError as error:
        raise InputError(f"{path}: no such file", code="SB-FILE-MISSING", hint="check the path") from error
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}", code="SB-FILE-READ") from error


def _without_waiting(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK)


def read_json(path: Path) -> Any:
    """Parsed JSON, or ``InputError`` (also SB-JSON-SYNTAX)."""
    try:
        return json.loads(read_bytes(path))
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: not valid JSON: {error}", code="SB-JSON-SYNTAX") from error


def read_model(path: Path, kind: type[ModelT]) -> ModelT:
    """A contract model from JSON, or ``InputError`` (also SB-CONTRACT) naming the first wrong field."""
    data = read_json(path)
    try:
        return kind.model_validate(data)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "(top)"
        raise InputError(
            f"{path}: not a {kind.__name__} of this version: {where}: {first['msg']}",
            code="SB-CONTRACT",
            hint="make it again with the same version of serving-bench",
        ) from error


def sha256(data: bytes) -> str:
    """Lower-case hex digest."""
    return hashlib.sha256(data).hexdigest()

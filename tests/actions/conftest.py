"""What the tests of actions and scripts share."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def root() -> Path:
    return ROOT


@pytest.fixture(scope="session")
def tool() -> Callable[[str], str]:
    """Path of a program of the test environment (requirements/dev.txt)."""

    def find(name: str) -> str:
        found = shutil.which(name, path=str(Path(sys.executable).parent))
        assert found, f"{name} is not beside {sys.executable}: run the tests with scripts/test"
        return found

    return find


def copy_of_sources(target: Path) -> Path:
    """A repository of its own with the files of this one as they are now, ignored files left out."""
    listed = subprocess.run(
        ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        check=True,
        capture_output=True,
    )
    for name in filter(None, listed.stdout.decode().split("\0")):
        if not (ROOT / name).is_file():
            continue  # deleted, and not yet committed
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, target / name)
    identity = ["-c", "user.name=test", "-c", "user.email=test@localhost"]
    for command in (["init", "-q", "-b", "main"], ["add", "-A"], [*identity, "commit", "-q", "-m", "copy"]):
        subprocess.run(["git", "-C", str(target), *command], check=True, stdin=subprocess.DEVNULL)
    return target


@pytest.fixture(scope="session")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return copy_of_sources(tmp_path_factory.mktemp("sources"))


@pytest.fixture(scope="session")
def uv_cache(tool: Callable[[str], str]) -> str:
    """The cache of the user who runs the tests, for set-ups that have another home folder."""
    return subprocess.check_output([tool("uv"), "cache", "dir"], text=True).strip()


@pytest.fixture(scope="session")
def marked() -> Callable[[str], list[str]]:
    """Command lines of live processes whose environment holds a marker."""

    def find(marker: str) -> list[str]:
        found = []
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                if marker.encode() in (folder / "environ").read_bytes():
                    found.append((folder / "cmdline").read_text().replace("\0", " "))
            except (FileNotFoundError, ProcessLookupError, PermissionError):
                continue  # ended in between, or another user's
        return found

    return find

"""The few questions that render asks git. Reads only; nothing is fetched."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from serving_bench.errors import InputError

_TIMEOUT_S = 120.0
_HISTORY_HINT = "check out with fetch-depth: 0"
_KEPT_OUT = frozenset({"GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX", "GIT_EXTERNAL_DIFF"})
"""Set where git itself calls a program, as in hooks: they would point at another work tree."""


@dataclass(frozen=True)
class Git:
    """The repository that holds ``folder``; ``env`` is what git is started with."""

    folder: Path
    env: Mapping[str, str]

    def _run(self, *args: str, stdin: bytes | None = None) -> subprocess.CompletedProcess[bytes]:
        env = {name: value for name, value in self.env.items() if name not in _KEPT_OUT}
        try:
            return subprocess.run(
                ["git", "--no-pager", "-C", str(self.folder), *args],
                input=stdin,
                stdin=None if stdin is not None else subprocess.DEVNULL,
                capture_output=True,
                check=False,
                timeout=_TIMEOUT_S,
                env=env | {"LC_ALL": "C", "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0"},
            )
        except FileNotFoundError as error:
            raise InputError("git is not installed", code="SB-GIT", hint="put git on the PATH") from error
        except subprocess.TimeoutExpired as error:
            raise InputError(f"git {args[0]} took more than {_TIMEOUT_S:g} s", code="SB-GIT") from error

    def _ask(self, *args: str, stdin: bytes | None = None) -> bytes:
        done = self._run(*args, stdin=stdin)
        if done.returncode:
            raise InputError(f"git {args[0]} failed: {_last_line(done.stderr)}", code="SB-GIT")
        return done.stdout

    def top(self) -> Path:
        """Root of the work tree."""
        return Path(self._ask("rev-parse", "--show-toplevel").decode("utf-8", "surrogateescape").removesuffix("\n"))

    def merge_base(self, ref: str) -> str:
        """The commit at which HEAD and ``ref`` parted, as hex digits.

        Raises ``InputError``: SB-GIT-REF where ``ref`` is no commit here,
        SB-GIT-HISTORY where the history does not reach back that far.
        """
        if ref.startswith("-") or not ref or "\0" in ref:
            raise InputError(f"{ref[:100]!a} is no name of a commit", code="SB-GIT-REF")
        self.top()
        found = self._run("rev-parse", "--verify", "--quiet", "--end-of-options", f"{ref}^{{commit}}")
        if found.returncode:
            raise InputError(f"there is no commit {ref[:100]!a} here", code="SB-GIT-REF", hint=_HISTORY_HINT)
        commit = found.stdout.decode().strip()
        base = self._run("merge-base", commit, "HEAD")
        if base.returncode:
            raise InputError(
                f"the history here does not reach back to where HEAD and {ref[:100]!a} parted",
                code="SB-GIT-HISTORY",
                hint=_HISTORY_HINT,
            )
        return base.stdout.decode().strip()

    def changed_paths(self, commit: str, below: Path) -> frozenset[str]:
        """Files below a folder that differ between a commit and the work tree, relative to its root; new ones too."""
        diff = ("diff", "--name-only", "-z", "--no-renames", "--no-ext-diff", "--no-textconv", commit, "--", str(below))
        new = ("ls-files", "--others", "--exclude-standard", "--full-name", "-z", "--", str(below))
        return frozenset(name for args in (diff, new) for name in _paths(self._ask(*args)))

    def files_at(self, commit: str, paths: Iterable[str]) -> dict[str, bytes]:
        """Content of files at a commit, by path relative to the root; a file that was not there is left out."""
        wanted = set(paths)
        objects = {}
        for line in self._ask("ls-tree", "-r", "-z", "--full-tree", commit).split(b"\0"):
            head, _, name = line.partition(b"\t")
            path = name.decode("utf-8", "surrogateescape")
            if path in wanted and head.split()[1] == b"blob":
                objects[path] = head.split()[2].decode()
        listing = "".join(f"{name}\n" for name in objects.values()).encode()
        return dict(zip(objects, _blobs(self._ask("cat-file", "--batch", stdin=listing)), strict=True))

    def message(self, commit: str) -> str:
        """A commit's message; SB-GIT-HISTORY where the commit is not here."""
        return self._commit(commit).partition("\n\n")[2]

    def head_commits(self) -> tuple[str, ...]:
        """HEAD and its parents: a pull request is checked out as a merge, whose second parent is its head.

        Read from the commit itself, since a shallow clone hides the parents.
        """
        head = self._ask("rev-parse", "HEAD").decode().strip()
        lines = self._commit(head).partition("\n\n")[0].splitlines()
        return (head, *(line.split()[1] for line in lines if line.startswith("parent ")))

    def _commit(self, commit: str) -> str:
        if not re.fullmatch(r"[0-9a-f]{40,64}", commit):
            raise InputError(f"{commit[:100]!a} is no commit's SHA", code="SB-GIT-REF")
        done = self._run("cat-file", "commit", commit)
        if done.returncode:
            raise InputError(f"commit {commit} is not here", code="SB-GIT-HISTORY", hint=_HISTORY_HINT)
        return done.stdout.decode("utf-8", "replace")


def _last_line(text: bytes) -> str:
    lines = text.decode("utf-8", "replace").strip().splitlines()
    return lines[-1][:500] if lines else "no reason given"


def _paths(listing: bytes) -> list[str]:
    return [name.decode("utf-8", "surrogateescape") for name in listing.split(b"\0") if name]


def _blobs(batch: bytes) -> list[bytes]:
    """Contents from ``git cat-file --batch``: ``<id> blob <size>\\n<content>\\n`` each."""
    found = []
    start = 0
    while start < len(batch):
        end = batch.index(b"\n", start)
        size = int(batch[start:end].split()[2])
        found.append(batch[end + 1 : end + 1 + size])
        start = end + 1 + size + 1
    return found

"""Files of dataset repositories on the Hugging Face Hub: looked up, resumed, checked, kept in the Hub's own cache.

Addresses, headers, tokens, sessions, the cache's layout and the meaning of answers are huggingface_hub's. The transfer
is written here, because a download there starts over after a kill, and waits as long as a server says.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath

import httpx2
from huggingface_hub import (
    HfApi,
    HfFileMetadata,
    constants,
    get_hf_file_metadata,
    get_session,
    hf_hub_url,
    try_to_load_from_cache,
)
from huggingface_hub.errors import FileMetadataError
from huggingface_hub.file_download import repo_folder_name
from huggingface_hub.utils import WeakFileLock, build_hf_headers, hf_raise_for_status

from serving_bench.datasets import hub_errors
from serving_bench.datasets.hub_errors import Wanted
from serving_bench.datasets.hub_retry import TooSlowError, patiently
from serving_bench.errors import InputError

KIND = "dataset"
_TIMEOUT_S = 30.0
_PARTIAL_CONTENT, _BAD_RANGE = 206, 416
_SHA256 = re.compile(r"[0-9a-f]{64}\Z")
_COMMIT = re.compile(r"[0-9a-f]{40}\Z")
_TAG = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}\Z")
"""An ETag that can be the name of a file: any other could lead out of the cache."""
_WINDOW_S, _WINDOW_BYTES = 60.0, 60 * 1024
"""A transfer that brings less in that time is given up, since the next byte can be waited for for ever."""

Progress = Callable[[Wanted, int, int | None], None]
"""Called with the bytes there are and the bytes there will be, where that is known."""


def _silent(_wanted: Wanted, _done: int, _total: int | None) -> None:
    pass


def file_digest(path: Path) -> str:
    """SHA-256 of a file of any size, as lower-case hex."""
    with path.open("rb") as source:
        return hashlib.file_digest(source, "sha256").hexdigest()


@dataclass(frozen=True)
class Hub:
    """The Hub as the environment says (HF_ENDPOINT, HF_TOKEN, HF_HOME, HF_HUB_OFFLINE), unless told otherwise."""

    cache: Path | None = None
    endpoint: str | None = None
    token: str | None = None
    progress: Progress = _silent
    sleep: Callable[[float], None] = time.sleep
    clock: Callable[[], float] = time.monotonic

    def fetch(self, wanted: Wanted) -> Path:
        """The checked file in the cache, loaded first where it is not there; ``InputError`` (SB-HUB-…)."""
        parts = PurePosixPath(wanted.file).parts
        if not parts or ".." in parts or wanted.file.startswith("/") or "\\" in wanted.file:
            raise hub_errors.wrong_name(wanted)
        with _told(wanted):
            found = self._cached(wanted)
            return found if found is not None else self._load(wanted)

    def current_revision(self, dataset: str, repo: str) -> str:
        """Commit that the repository's main branch stands at."""
        wanted = Wanted(dataset, repo, "main", "")
        with _told(wanted):
            api = HfApi(endpoint=self.endpoint, token=self.token)
            found = patiently(lambda: api.dataset_info(repo, timeout=_TIMEOUT_S).sha, lambda: 0, self.sleep)
            if not found or not _COMMIT.match(found):
                raise FileMetadataError("no commit in the answer")
            return found

    @property
    def _root(self) -> Path:
        return self.cache or Path(constants.HF_HUB_CACHE)

    def _folder(self, wanted: Wanted) -> Path:
        return self._root / repo_folder_name(repo_id=wanted.repo, repo_type=KIND)

    def _cached(self, wanted: Wanted) -> Path | None:
        found = try_to_load_from_cache(
            wanted.repo, wanted.file, cache_dir=self._root, revision=wanted.revision, repo_type=KIND
        )
        if not isinstance(found, str):
            return None
        path = Path(found)
        hint = f"delete {path.resolve()} to load it again, or lock what is meant with `fetch --update {wanted.dataset}`"
        _check(wanted, path, hint)
        return path

    def _load(self, wanted: Wanted) -> Path:
        url = hf_hub_url(wanted.repo, wanted.file, repo_type=KIND, revision=wanted.revision, endpoint=self.endpoint)
        metadata = patiently(lambda: self._look_up(wanted, url), lambda: 0, self.sleep)
        blobs = self._folder(wanted) / "blobs"
        blob, partial = blobs / str(metadata.etag), blobs / f"{metadata.etag}.serving-bench.incomplete"
        blobs.mkdir(parents=True, exist_ok=True)
        locks = self._root / ".locks" / self._folder(wanted).name
        locks.mkdir(parents=True, exist_ok=True)
        with WeakFileLock(locks / f"{metadata.etag}.lock"):
            if blob.exists():
                _check(wanted, blob, f"delete {blob} to load it again")
            else:
                patiently(lambda: self._transfer(wanted, url, metadata, partial), lambda: _size(partial), self.sleep)
                os.replace(partial, blob)  # noqa: PTH105  the atomic step, named as the system calls it
            return _link(blob, self._folder(wanted) / "snapshots" / wanted.revision / wanted.file)

    def _look_up(self, wanted: Wanted, url: str) -> HfFileMetadata:
        metadata = get_hf_file_metadata(url, token=self.token, timeout=_TIMEOUT_S, endpoint=self.endpoint)
        if metadata.commit_hash is None or not metadata.etag or not _TAG.match(metadata.etag):
            raise FileMetadataError("no commit or no ETag in the answer")
        if metadata.commit_hash != wanted.revision:
            raise hub_errors.other_commit(wanted, metadata.commit_hash)
        if metadata.size is not None:
            _check_size(wanted, metadata.size)
        if _SHA256.match(metadata.etag):  # large files: the tag is the content's own digest
            _check_digest(wanted, metadata.etag)
        return metadata

    def _transfer(self, wanted: Wanted, url: str, metadata: HfFileMetadata, partial: Path) -> None:
        """Load what is missing of the file and check it; what is there stays there when this fails."""
        begun = _size(partial)
        if metadata.size is None or begun < metadata.size or begun == 0:
            self._receive(wanted, url, metadata.size, partial)
        try:
            _check(replace(wanted, size=wanted.size or metadata.size), partial)
        except InputError as error:
            partial.unlink()
            if begun:  # what an earlier try left may be to blame: once more from the start
                raise httpx2.ReadError("the resumed file is not what was wanted") from error
            raise

    def _receive(self, wanted: Wanted, url: str, total: int | None, partial: Path) -> None:
        done = _size(partial)
        free = shutil.disk_usage(partial.parent).free
        if total is not None and total - done > free:
            raise hub_errors.disk_full(wanted, total - done, free)
        headers = build_hf_headers(token=self.token) | {"Accept-Encoding": "identity"}
        if done:
            headers["Range"] = f"bytes={done}-"
        # A redirect to another host loses the token on the way: the client takes care of that.
        with get_session().stream("GET", url, headers=headers, timeout=_TIMEOUT_S) as answer:
            if answer.status_code == _BAD_RANGE:
                partial.unlink()  # there is less of the file than is here: from the start
            hf_raise_for_status(answer)
            done = done if answer.status_code == _PARTIAL_CONTENT else 0
            if done and not answer.headers.get("content-range", "").startswith(f"bytes {done}-"):
                partial.unlink()  # as above
                raise httpx2.ReadError("the answer is another part than was asked for")
            with partial.open("ab") as out:
                out.truncate(done)
                for chunk in self._at_a_pace(answer):
                    out.write(chunk)
                    done += len(chunk)
                    if total is not None and done > total:
                        break  # the check says that it is too long; a body without an end would fill the disk
                    self.progress(wanted, done, total)
        if total is not None and done < total:
            raise httpx2.ReadError("the answer ended early")

    def _at_a_pace(self, answer: httpx2.Response) -> Iterator[bytes]:
        """The body as it is sent; nothing of it is unpacked, since a file is asked for as it is."""
        since, brought = self.clock(), 0
        for chunk in answer.iter_raw():
            brought += len(chunk)
            if self.clock() - since >= _WINDOW_S:
                if brought < _WINDOW_BYTES:
                    raise TooSlowError(f"{brought} bytes in {_WINDOW_S:g} s")
                since, brought = self.clock(), 0
            yield chunk


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _check(wanted: Wanted, path: Path, hint: str | None = None) -> None:
    _check_size(wanted, _size(path), hint)
    if wanted.sha256 is not None:
        _check_digest(wanted, file_digest(path), hint)


def _check_size(wanted: Wanted, size: int, hint: str | None = None) -> None:
    if wanted.size is not None and size != wanted.size:
        raise hub_errors.other_content(wanted, "its size in bytes", str(size), str(wanted.size), hint)


def _check_digest(wanted: Wanted, found: str, hint: str | None = None) -> None:
    if wanted.sha256 is not None and found != wanted.sha256:
        raise hub_errors.other_content(wanted, "its sha256", f"{found[:12]}…", f"{wanted.sha256[:12]}…", hint)


def _link(blob: Path, pointer: Path) -> Path:
    """The entry of the snapshot, made as the Hub's cache has it: a relative link to the blob."""
    pointer.parent.mkdir(parents=True, exist_ok=True)
    if not pointer.exists():
        pointer.unlink(missing_ok=True)  # a link whose blob had been removed
        pointer.symlink_to(os.path.relpath(blob, pointer.parent))
    return pointer


@contextmanager
def _told(wanted: Wanted) -> Iterator[None]:
    """Known failures of the Hub, the network and the disk as coded errors."""
    try:
        yield
    except InputError:
        raise
    except Exception as error:
        known = hub_errors.explain(error, wanted, datetime.now(UTC))
        if known is None:
            raise
        raise known from error

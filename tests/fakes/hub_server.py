"""A Hugging Face Hub for dataset repositories, as huggingface_hub 2.4 speaks to it over HTTP.

What it answers, with the headers of the real one: HEAD and GET of
``/datasets/<repo>/resolve/<revision>/<file>`` (ETag, X-Repo-Commit; for large files a redirect to another host with
X-Linked-Etag and X-Linked-Size) and GET of ``/api/datasets/<repo>``. Faults are queued: each is used up by the next
request of its method.
"""

from __future__ import annotations

import hashlib
import json
import re
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

COMMIT = "a1b2c3d4e5" * 4
_RESOLVE = re.compile(r"/datasets/(?P<repo>[^/]+/[^/]+)/resolve/(?P<revision>[^/]+)/(?P<file>.+)\Z")
_API = re.compile(r"/api/datasets/(?P<repo>[^/]+/[^/]+?)(?:/revision/(?P<revision>[^/]+))?\Z")
_RANGE = re.compile(r"bytes=(\d+)-\Z")


@dataclass
class Repo:
    """A dataset repository at one commit; ``token`` is needed where it is private, ``gated`` is the refusing status."""

    files: dict[str, bytes]
    commit: str = COMMIT
    token: str | None = None
    gated: int | None = None
    large: bool = False
    """Files are served by the other host, as files in large-file storage are."""


@dataclass
class Fault:
    """One bad answer: a status with headers, or a body that is cut short, changed or slow."""

    status: int | None = None
    headers: dict[str, str] = field(default_factory=dict)
    cut: int | None = None
    """Bytes after which the connection breaks."""
    body: bytes | None = None
    pause_s: float = 0.0
    """Between pieces of the body."""


@dataclass
class Seen:
    method: str
    path: str
    host: str
    headers: dict[str, str]


@dataclass
class FakeHub:
    repos: dict[str, Repo]
    url: str = ""
    cdn_url: str = ""
    seen: list[Seen] = field(default_factory=list)
    faults: dict[str, deque[Fault]] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def fail(self, method: str, *faults: Fault) -> None:
        self.faults.setdefault(method, deque()).extend(faults)

    def fault(self, method: str) -> Fault | None:
        with self.lock:
            queue = self.faults.get(method)
            return queue.popleft() if queue else None

    def asked(self, method: str, host: str = "hub") -> list[Seen]:
        return [one for one in self.seen if (one.method, one.host) == (method, host)]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    hub: FakeHub
    host: str

    def do_HEAD(self) -> None:
        self._serve()

    def do_GET(self) -> None:
        self._serve()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        pass

    def _serve(self) -> None:
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.hub.seen.append(Seen(self.command, self.path, self.host, headers))
        # The library may ask for its list of agents, in a thread, whenever it likes: no fault is meant for that.
        meant = not self.path.startswith("/api/agent-harnesses")
        fault = (self.hub.fault(self.command) if meant else None) or Fault()
        if fault.status is not None:
            self._answer(fault.status, fault.headers, fault.body or b"")
        elif (found := _API.match(self.path.partition("?")[0])) is not None:
            self._describe(found)
        elif (found := _RESOLVE.match(self.path)) is not None:
            self._resolve(found, fault)
        else:
            self._answer(404, {}, b"")

    def _repo(self, name: str) -> Repo | None:
        """The repository, or None after an answer that refuses it."""
        repo = self.hub.repos.get(name)
        token = self.headers.get("Authorization", "").removeprefix("Bearer ")
        if repo is None:
            self._answer(404, {"X-Error-Code": "RepoNotFound", "X-Error-Message": "Repository not found"}, b"")
        elif repo.gated is not None:
            self._answer(repo.gated, {"X-Error-Code": "GatedRepo", "X-Error-Message": "Access is restricted"}, b"")
        elif self.host == "hub" and repo.token is not None and token != repo.token:
            self._answer(401, {"X-Error-Message": "Invalid username or password."}, b"")
        else:
            return repo
        return None

    def _describe(self, found: re.Match[str]) -> None:
        repo = self._repo(found["repo"])
        if repo is not None:
            body = {"id": found["repo"], "sha": repo.commit, "siblings": [{"rfilename": name} for name in repo.files]}
            self._answer(200, {"Content-Type": "application/json"}, json.dumps(body).encode())

    def _resolve(self, found: re.Match[str], fault: Fault) -> None:
        repo = self._repo(found["repo"])
        if repo is None:
            return
        if found["revision"] not in (repo.commit, "main"):
            self._answer(404, {"X-Error-Code": "RevisionNotFound"}, b"")
        elif found["file"] not in repo.files:
            self._answer(404, {"X-Error-Code": "EntryNotFound", "X-Repo-Commit": repo.commit}, b"")
        elif repo.large and self.host == "hub":
            self._redirect(repo, repo.files[found["file"]])
        else:
            self._send(repo, repo.files[found["file"]], fault)

    def _redirect(self, repo: Repo, data: bytes) -> None:
        digest = hashlib.sha256(data).hexdigest()
        headers = {
            "X-Repo-Commit": repo.commit,
            "X-Linked-Etag": f'"{digest}"',
            "X-Linked-Size": str(len(data)),
            "Location": f"{self.hub.cdn_url}{self.path}",
        }
        self._answer(302, headers, b"")

    def _send(self, repo: Repo, data: bytes, fault: Fault) -> None:
        etag = hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()
        body = data if fault.body is None else fault.body
        asked = _RANGE.match(self.headers.get("Range", ""))
        start = int(asked[1]) if asked else 0
        if start and start >= len(body):
            self._answer(416, {"Content-Range": f"bytes */{len(body)}"}, b"")
            return
        headers = {"ETag": f'"{etag}"', "X-Repo-Commit": repo.commit, "Accept-Ranges": "bytes"}
        if asked:
            headers["Content-Range"] = f"bytes {start}-{len(body) - 1}/{len(body)}"
        self._answer(206 if asked else 200, headers, body[start:], fault)

    def _answer(self, status: int, headers: dict[str, str], body: bytes, fault: Fault | None = None) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        if "Content-Length" not in headers:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command == "HEAD":
            return
        end = len(body) if fault is None or fault.cut is None else fault.cut
        for at in range(0, end, 1 << 16):
            self.wfile.write(body[at : min(at + (1 << 16), end)])
            time.sleep(fault.pause_s if fault else 0)
        if end < len(body):
            self.wfile.flush()
            self.close_connection = True
            self.connection.shutdown(2)

    def handle(self) -> None:
        try:
            super().handle()
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True  # the client was killed, which is what some tests do


@contextmanager
def running(repos: dict[str, Repo]) -> Iterator[FakeHub]:
    """The hub, and the other host that large files come from, on ports of their own."""
    hub = FakeHub(repos)
    servers = []
    for host in ("hub", "cdn"):
        handler = type("Handler", (_Handler,), {"hub": hub, "host": host})
        server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        servers.append(server)
    hub.url, hub.cdn_url = (f"http://127.0.0.1:{server.server_address[1]}" for server in servers)
    try:
        yield hub
    finally:
        for server in servers:
            server.shutdown()
            server.server_close()

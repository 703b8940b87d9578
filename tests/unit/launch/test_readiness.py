"""The questions of readiness, put to real HTTP servers."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from serving_bench.launch.readiness import Missing, instance_ids, probe, worker_ids
from serving_bench.launch.topology import ManagedProcess, Topology

METRICS = 'dynamo_component_requests_total{{dynamo_component="backend",dynamo_endpoint="{0}",worker_id="{1}"}} 0\n'


@dataclass
class Server:
    """Answers by (method, path); a list of answers is used up, its last one stays."""

    answers: dict[tuple[str, str], list[tuple[int, str]]]
    asked: list[tuple[str, str, str]] = field(default_factory=list)
    url: str = ""

    def answer(self, method: str, path: str, body: str) -> tuple[int, str]:
        self.asked.append((method, path, body))
        queue = self.answers.get((method, path), [(404, "no such route")])
        return queue.pop(0) if len(queue) > 1 else queue[0]


@pytest.fixture
def serve() -> Iterator[Callable[[dict[tuple[str, str], list[tuple[int, str]]]], Server]]:
    running: list[ThreadingHTTPServer] = []

    def begin(answers: dict[tuple[str, str], list[tuple[int, str]]]) -> Server:
        server = Server(answers)

        class Handler(BaseHTTPRequestHandler):
            def _reply(self) -> None:
                length = int(self.headers.get("Content-Length") or 0)
                status, body = server.answer(self.command, self.path, self.rfile.read(length).decode())
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body.encode())

            def do_GET(self) -> None:
                self._reply()

            def do_POST(self) -> None:
                self._reply()

            def log_message(self, *_: object) -> None:
                """Quiet."""

        http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        http.daemon_threads = True
        running.append(http)
        threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        server.url = f"http://127.0.0.1:{http.server_address[1]}"
        return server

    yield begin
    for http in running:
        http.shutdown()
        http.server_close()


def _health(*ids: int) -> str:
    instances = [{"endpoint": "generate", "instance_id": number} for number in ids]
    return json.dumps({"status": "healthy", "instances": [*instances, {"endpoint": "load", "instance_id": 99}]})


def _replica(serve: Callable[..., Server], worker: int | None, health: int = 200) -> Server:
    metrics = "" if worker is None else METRICS.format("generate", f"{worker:x}") + METRICS.format("other", "ff")
    return serve({("GET", "/health"): [(health, "{}")], ("GET", "/metrics"): [(200, metrics)]})


def _topology(replicas: list[Server], router: Server) -> Topology:
    def process(name: str, url: str, index: int | None) -> ManagedProcess:
        return ManagedProcess(name, (), {}, Path("log"), (), url, index)

    return Topology(
        tuple(process(f"replica.{number}", server.url, number) for number, server in enumerate(replicas)),
        process("router", router.url, None),
        "demo",
    )


def _router(serve: Callable[..., Server], health: str, completions: list[int]) -> Server:
    posts = [(status, "{}") for status in completions]
    return serve({("GET", "/health"): [(200, health)], ("POST", "/v1/chat/completions"): posts})


def test_ready_gives_each_replicas_worker_id_as_the_router_has_it(serve: Callable[..., Server]) -> None:
    big = 13_641_994_048_151_046_771
    router = _router(serve, _health(11, big), [200])
    topology = _topology([_replica(serve, big), _replica(serve, 11)], router)
    assert probe(topology) == {0: (str(big),), 1: ("11",)}
    posts = [json.loads(body) for method, _, body in router.asked if method == "POST"]
    assert len(posts) == 3
    assert all(post["model"] == "demo" and post["max_tokens"] == 2 for post in posts)


@pytest.mark.parametrize(
    ("health", "known", "completions", "missing"),
    [
        ((200, 503), (1, 2), [200], Missing("replica.1 healthy (HTTP 503)", "replica.1")),
        ((404, 200), (1, 2), [200], Missing("replica.0 healthy (HTTP 404)", "replica.0")),
        ((200, 200), (1,), [200], Missing("replicas registered at the router (1 of 2)", "router")),
        ((200, 200), (1, 2, 3), [200], Missing("replicas registered at the router (3 of 2)", "router")),
        ((200, 200), (1, 7), [200], Missing("replica.1 known to the router by its worker id", "router")),
        ((200, 200), (1, 2), [503], Missing("3 completions in a row (HTTP 503)", "router")),
        ((200, 200), (1, 2), [200, 200, 404], Missing("3 completions in a row (HTTP 404)", "router")),
    ],
)
def test_what_is_missing_is_named(
    serve: Callable[..., Server],
    health: tuple[int, int],
    known: tuple[int, ...],
    completions: list[int],
    missing: Missing,
) -> None:
    replicas = [_replica(serve, number + 1, status) for number, status in enumerate(health)]
    router = _router(serve, _health(*known), completions)
    assert probe(_topology(replicas, router)) == missing


def test_three_completions_must_come_in_one_row(serve: Callable[..., Server]) -> None:
    router = _router(serve, _health(1), [200, 200, 503, 200, 503, 200, 200, 200])
    topology = _topology([_replica(serve, 1)], router)
    rounds = [isinstance(probe(topology), Missing) for _ in range(3)]
    assert rounds == [True, True, False]


def test_no_server_at_all_is_missing_too(serve: Callable[..., Server]) -> None:
    gone = Server({}, url="http://127.0.0.1:9")
    assert probe(_topology([gone], gone)) == Missing("replica.0 healthy (ConnectionError)", "replica.0")


def test_a_replica_without_worker_id_in_its_metrics_is_no_reason_to_wait(serve: Callable[..., Server]) -> None:
    router = _router(serve, _health(5), [200])
    assert probe(_topology([_replica(serve, None)], router)) == {0: ()}


@pytest.mark.parametrize("body", [None, [], "x", {"instances": None}, {"instances": ["x", {"endpoint": "other"}]}, 7])
def test_odd_health_answers_have_no_instances(body: object) -> None:
    assert instance_ids(body) == frozenset()


def test_worker_ids_are_those_of_the_generate_endpoint() -> None:
    text = METRICS.format("generate", "1f") + METRICS.format("worker_kv_query", "aa") + "# dynamo\n"
    assert worker_ids(text) == ("31",)

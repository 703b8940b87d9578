"""The Hub's files against a Hub over real HTTP: what is loaded, resumed, refused, and how often is asked."""

from __future__ import annotations

import errno
import gzip
import hashlib
import re
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path

import pytest
from hub_server import COMMIT, FakeHub, Fault, Repo, running
from huggingface_hub import close_session, hf_hub_download

from serving_bench.datasets import hub_errors, hub_retry
from serving_bench.datasets.hub import Hub
from serving_bench.datasets.hub_errors import Wanted
from serving_bench.errors import InputError

DATA = bytes(range(256)) * 2_000
DIGEST = hashlib.sha256(DATA).hexdigest()
WANTED = Wanted("calls", "org/calls", COMMIT, "data/calls.jsonl", DIGEST, len(DATA))


@dataclass
class Client:
    """A fetcher with a cache of its own, which notes the waits instead of sleeping."""

    fake: FakeHub
    cache: Path
    token: str = "hf_not_a_real_token"
    waits: list[float] = field(default_factory=list)

    def fetch(self, wanted: Wanted = WANTED) -> Path:
        return Hub(self.cache, self.fake.url, self.token, sleep=self.waits.append).fetch(wanted)

    def refusal(self, wanted: Wanted = WANTED) -> str:
        with pytest.raises(InputError) as caught:
            self.fetch(wanted)
        text = "\n".join(caught.value.lines())
        assert caught.value.hint
        assert self.token not in text
        assert wanted.dataset in text
        return caught.value.code

    def partials(self) -> list[Path]:
        return list(self.cache.rglob("*.incomplete"))


@pytest.fixture
def fake() -> Iterator[FakeHub]:
    with running({"org/calls": Repo({"data/calls.jsonl": DATA, "rooms.csv": b"a,b,c\n"})}) as hub:
        yield hub
        close_session()  # the library keeps connections open between calls


@pytest.fixture
def client(fake: FakeHub, tmp_path: Path) -> Client:
    return Client(fake, tmp_path / "hub")


@pytest.mark.parametrize("large", [False, True])
def test_a_file_is_loaded_once_and_then_needs_no_network(client: Client, *, large: bool) -> None:
    client.fake.repos["org/calls"].large = large
    path = client.fetch()
    assert path.read_bytes() == DATA
    asked = len(client.fake.seen)
    assert client.fetch() == path
    assert len(client.fake.seen) == asked
    assert client.partials() == []
    assert client.waits == []


@pytest.mark.parametrize("large", [False, True])
def test_the_library_itself_finds_the_file_in_the_cache(client: Client, *, large: bool) -> None:
    client.fake.repos["org/calls"].large = large
    path = client.fetch()
    found = hf_hub_download(
        WANTED.repo, WANTED.file, repo_type="dataset", revision=COMMIT, cache_dir=client.cache, local_files_only=True
    )
    assert Path(found) == path
    assert path.is_symlink()


def test_a_file_that_the_library_loaded_is_found(client: Client) -> None:
    found = hf_hub_download(
        WANTED.repo, WANTED.file, repo_type="dataset", revision=COMMIT, cache_dir=client.cache,
        endpoint=client.fake.url, token=False,
    )  # fmt: skip
    asked = len(client.fake.seen)
    assert client.fetch() == Path(found)
    assert len(client.fake.seen) == asked


def test_the_token_goes_to_the_hub_and_not_to_the_other_host(client: Client) -> None:
    client.fake.repos["org/calls"] = Repo({"data/calls.jsonl": DATA}, token=client.token, large=True)
    client.fetch()
    assert all(one.headers["authorization"] == f"Bearer {client.token}" for one in client.fake.asked("GET"))
    (other,) = client.fake.asked("GET", "cdn")
    assert "authorization" not in other.headers


def test_a_broken_connection_is_resumed_where_it_broke(client: Client) -> None:
    client.fake.fail("GET", Fault(cut=100_000), Fault(cut=150_000))
    assert client.fetch().read_bytes() == DATA
    assert [one.headers.get("range") for one in client.fake.asked("GET")] == [
        None, "bytes=100000-", "bytes=250000-",
    ]  # fmt: skip
    assert client.waits == [1.0, 1.0], "a try that brought something starts the count anew"


def test_a_later_call_resumes_what_an_earlier_one_left(client: Client) -> None:
    client.fake.fail("GET", Fault(cut=100_000), *[Fault(cut=0)] * 4)
    assert client.refusal() == "SB-HUB-NETWORK"
    (partial,) = client.partials()
    assert partial.stat().st_size == 100_000
    assert client.fetch().read_bytes() == DATA
    assert client.fake.asked("GET")[-1].headers["range"] == "bytes=100000-"


def test_a_resumed_file_with_a_wrong_beginning_is_loaded_from_the_start(client: Client) -> None:
    client.fake.fail("GET", Fault(cut=100_000), *[Fault(cut=0)] * 4)
    assert client.refusal() == "SB-HUB-NETWORK"
    (partial,) = client.partials()
    partial.write_bytes(b"x" * 100_000)
    assert client.fetch().read_bytes() == DATA


def test_a_partial_file_longer_than_the_file_is_thrown_away(client: Client) -> None:
    client.fake.fail("GET", Fault(cut=100_000), *[Fault(cut=0)] * 4)
    assert client.refusal() == "SB-HUB-NETWORK"
    (partial,) = client.partials()
    partial.write_bytes(DATA + b"more")
    assert client.fetch().read_bytes() == DATA


def test_an_unwell_hub_is_asked_again_with_growing_waits(client: Client) -> None:
    client.fake.fail("HEAD", Fault(status=503), Fault(status=500))
    client.fake.fail("GET", Fault(status=502))
    assert client.fetch().read_bytes() == DATA
    assert client.waits == [1.0, 2.0, 1.0]


@pytest.mark.parametrize("method", ["HEAD", "GET"])
def test_a_hub_that_stays_unwell_is_told_after_five_tries(client: Client, method: str) -> None:
    client.fake.fail(method, *[Fault(status=503)] * 9)
    assert client.refusal() == "SB-HUB-SERVER"
    assert len(client.fake.asked(method)) == 5
    assert client.waits == [1.0, 2.0, 4.0, 8.0]


@pytest.mark.parametrize(
    "headers",
    [{"Retry-After": "17"}, {"RateLimit": '"api";r=0;t=17', "RateLimit-Policy": '"fixed window";"api";q=5;w=300'}],
)
def test_a_rate_limit_is_waited_for_as_the_hub_says(client: Client, headers: dict[str, str]) -> None:
    client.fake.fail("HEAD", Fault(status=429, headers=headers))
    client.fake.fail("GET", Fault(status=429, headers=headers))
    assert client.fetch().read_bytes() == DATA
    assert client.waits == [17.0, 17.0]


def test_a_wait_of_an_hour_is_told_and_not_slept(client: Client) -> None:
    client.fake.fail("HEAD", Fault(status=429, headers={"Retry-After": "3600"}))
    with pytest.raises(InputError, match="asks to wait 3600 s") as caught:
        client.fetch()
    assert caught.value.code == "SB-HUB-RATE-LIMIT"
    assert client.waits == []


def test_a_rate_limit_without_an_end_is_told(client: Client) -> None:
    client.fake.fail("GET", *[Fault(status=429)] * 9)
    assert client.refusal() == "SB-HUB-RATE-LIMIT"
    assert len(client.fake.asked("GET")) == 5


@pytest.mark.parametrize(
    ("wanted", "code"),
    [
        (replace(WANTED, repo="org/other"), "SB-HUB-REPO"),
        (replace(WANTED, repo="a/b/c"), "SB-HUB-REPO"),
        (replace(WANTED, revision="f" * 40), "SB-HUB-REVISION"),
        (replace(WANTED, file="data/other.jsonl"), "SB-HUB-FILE"),
        (replace(WANTED, file="../../calls.jsonl"), "SB-HUB-FILE"),
        (replace(WANTED, file="/etc/passwd"), "SB-HUB-FILE"),
    ],
)
def test_what_is_not_there_is_told_at_once(client: Client, wanted: Wanted, code: str) -> None:
    assert client.refusal(wanted) == code
    assert client.waits == []


@pytest.mark.parametrize(
    ("repo", "code"),
    [
        (Repo({}, gated=401), "SB-HUB-GATED"),
        (Repo({}, gated=403), "SB-HUB-GATED"),
        (Repo({}, token="hf_another"), "SB-HUB-ACCESS"),
    ],
)
def test_a_repository_without_access_is_told_at_once(client: Client, repo: Repo, code: str) -> None:
    client.fake.repos["org/calls"] = repo
    assert client.refusal() == code
    assert client.waits == []


@pytest.mark.parametrize("status", [400, 410, 418])
def test_an_answer_of_no_hub_is_told(client: Client, status: int) -> None:
    client.fake.fail("HEAD", Fault(status=status))
    assert client.refusal() == "SB-HUB-ANSWER"


def test_an_answer_without_a_commit_is_told(client: Client) -> None:
    client.fake.fail("HEAD", Fault(status=200, headers={"ETag": '"x"'}))
    assert client.refusal() == "SB-HUB-ANSWER"


def test_another_commit_than_asked_for_is_told(client: Client) -> None:
    client.fake.fail("HEAD", Fault(status=200, headers={"ETag": '"x"', "X-Repo-Commit": "b" * 40}))
    assert client.refusal() == "SB-HUB-REVISION"


def test_wrong_content_is_told_and_not_kept(client: Client) -> None:
    client.fake.fail("GET", Fault(body=DATA[:-1] + b"!"))
    assert client.refusal() == "SB-HUB-DIGEST"
    assert client.partials() == []
    assert [path for path in client.cache.rglob("*") if path.is_file() and path.suffix != ".lock"] == []
    assert client.fetch().read_bytes() == DATA


@pytest.mark.parametrize("large", [False, True])
def test_a_lock_that_says_otherwise_is_told(client: Client, *, large: bool) -> None:
    client.fake.repos["org/calls"].large = large
    assert client.refusal(replace(WANTED, sha256="0" * 64)) == "SB-HUB-DIGEST"
    assert client.refusal(replace(WANTED, size=5)) == "SB-HUB-DIGEST"
    assert len(client.fake.asked("GET", "cdn")) == 0, "a large file's digest is known before it is loaded"


def test_a_cached_file_that_was_changed_is_told(client: Client) -> None:
    path = client.fetch()
    path.resolve().write_bytes(b"?" + DATA[1:])
    assert client.refusal() == "SB-HUB-DIGEST"
    path.resolve().unlink()
    assert client.fetch().read_bytes() == DATA


def test_no_network_at_all_is_told(client: Client) -> None:
    client.fake.url = "http://127.0.0.1:1"
    assert client.refusal() == "SB-HUB-NETWORK"
    assert client.waits == [1.0, 2.0, 4.0, 8.0]


def test_a_disk_too_small_is_told_before_anything_is_loaded(client: Client) -> None:
    headers = {"ETag": '"x"', "X-Repo-Commit": COMMIT, "X-Linked-Size": str(10**18)}
    client.fake.fail("HEAD", Fault(status=200, headers=headers))
    assert client.refusal(replace(WANTED, size=None)) == "SB-HUB-DISK"
    assert client.fake.asked("GET") == []


@pytest.mark.parametrize(
    ("number", "code"), [(errno.ENOSPC, "SB-HUB-DISK"), (errno.EDQUOT, "SB-HUB-DISK"), (errno.EROFS, "SB-HUB-CACHE")]
)
def test_what_the_disk_says_is_told(number: int, code: str) -> None:
    told = hub_errors.explain(OSError(number, "no"), WANTED, datetime.now(UTC))
    assert told is not None
    assert told.code == code


def test_a_cache_that_is_a_file_is_told(client: Client) -> None:
    client.cache.write_text("in the way")
    assert client.refusal() == "SB-HUB-CACHE"


def test_a_fault_of_the_program_is_no_fault_of_the_hub() -> None:
    assert hub_errors.explain(KeyError("x"), WANTED, datetime.now(UTC)) is None


def test_two_fetches_at_once_load_the_file_once(client: Client) -> None:
    client.fake.fail("GET", Fault(pause_s=0.02))
    start = threading.Barrier(2)

    def one(_number: int) -> bytes:
        start.wait(10)
        return client.fetch().read_bytes()

    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(one, range(2))) == [DATA, DATA]
    assert len(client.fake.asked("GET")) == 1


def test_the_current_revision_is_the_commit_of_main(client: Client) -> None:
    client.fake.fail("GET", Fault(status=503))
    hub = Hub(client.cache, client.fake.url, client.token, sleep=client.waits.append)
    assert hub.current_revision("calls", "org/calls") == COMMIT
    assert client.waits == [1.0]
    with pytest.raises(InputError) as caught:
        hub.current_revision("calls", "org/other")
    assert caught.value.code == "SB-HUB-REPO"


def test_a_retry_after_may_be_a_date(client: Client) -> None:
    later = datetime.now(UTC) + timedelta(seconds=30)
    client.fake.fail("HEAD", Fault(status=429, headers={"Retry-After": format_datetime(later, usegmt=True)}))
    client.fetch()
    assert client.waits == [pytest.approx(30, abs=5)]


def test_waits_are_bounded() -> None:
    assert sum(hub_retry.BACKOFF_S) + hub_retry.LONGEST_WAIT_S * len(hub_retry.BACKOFF_S) < 600


def test_the_document_lists_every_code() -> None:
    root = Path(__file__).resolve().parents[3]
    source = (root / "src/serving_bench/datasets/hub_errors.py").read_text(encoding="utf-8")
    raised = set(re.findall(r'"([A-Z]{2,}(?:-[A-Z]+)*)"', source))
    listed = re.findall(
        r"^\| `SB-HUB-([A-Z-]+)` \|", (root / "docs/datasets.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert set(listed) == raised
    assert len(listed) == len(raised)


@pytest.mark.parametrize("tag", ['"../../../../evil"', '"a/b"', '".."', '"a\tb"'])
def test_an_etag_cannot_lead_out_of_the_cache(client: Client, tmp_path: Path, tag: str) -> None:
    headers = {"ETag": tag, "X-Repo-Commit": COMMIT, "Content-Length": str(len(DATA))}
    client.fake.fail("HEAD", Fault(status=200, headers=headers))
    assert client.refusal() == "SB-HUB-ANSWER"
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_a_body_without_an_end_is_not_loaded_to_it(client: Client) -> None:
    client.fake.fail("GET", Fault(body=DATA * 100))
    with pytest.raises(InputError, match="its size in bytes is") as caught:
        client.fetch()
    found = re.search(r"its size in bytes is (\d+)", caught.value.message)
    assert found is not None
    assert len(DATA) < int(found[1]) < 2 * len(DATA)
    assert client.partials() == []


def test_a_packed_body_is_not_unpacked(client: Client) -> None:
    """What it would unpack to has no bound; it is not what was asked for, and the file is loaded again."""
    packed = gzip.compress(bytes(20_000_000))
    client.fake.fail("GET", Fault(status=200, headers={"Content-Encoding": "gzip"}, body=packed))
    assert client.fetch().read_bytes() == DATA


@pytest.mark.parametrize("method", ["HEAD", "GET"])
def test_redirects_in_a_circle_are_told(client: Client, method: str) -> None:
    there = {"Location": f"{client.fake.url}/datasets/org/calls/resolve/{COMMIT}/{WANTED.file}"}
    client.fake.fail(method, *[Fault(status=302, headers=there)] * 50)
    assert client.refusal() == "SB-HUB-NETWORK"


def test_another_part_than_was_asked_for_is_not_appended(client: Client) -> None:
    """Also where no digest would tell, as while a lock entry is made."""
    client.fake.fail("GET", Fault(cut=100_000))
    wrong = {"Content-Range": f"bytes 0-99/{len(DATA)}", "ETag": '"x"', "X-Repo-Commit": COMMIT}
    client.fake.fail("GET", Fault(status=206, headers=wrong, body=b"x" * (len(DATA) - 100_000)))
    assert client.fetch(replace(WANTED, sha256=None)).read_bytes() == DATA


def test_a_trickle_is_given_up(client: Client) -> None:
    """Each look at the clock finds a minute gone; every try brings a little more."""
    minutes = iter(range(0, 600_000, 61))
    client.fake.fail("GET", *[Fault(cut=1_000)] * 50)
    hub = Hub(
        client.cache, client.fake.url, client.token, sleep=client.waits.append, clock=lambda: float(next(minutes))
    )
    with pytest.raises(InputError) as caught:
        hub.fetch(WANTED)
    assert caught.value.code == "SB-HUB-NETWORK"
    assert client.waits == list(hub_retry.BACKOFF_S)


def test_a_current_revision_is_a_commit(client: Client) -> None:
    client.fake.repos["org/calls"].commit = "../../x"
    with pytest.raises(InputError) as caught:
        Hub(client.cache, client.fake.url, client.token).current_revision("calls", "org/calls")
    assert caught.value.code == "SB-HUB-ANSWER"

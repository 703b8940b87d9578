"""``serving-bench fetch`` as people call it: a process, a Hub over HTTP, a cache in HF_HOME."""

from __future__ import annotations

import hashlib
import io
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml
from hub_server import COMMIT, FakeHub, Fault, Repo, running

from serving_bench.config.models import DatasetsYaml
from serving_bench.config.strictyaml import parse
from serving_bench.config.structure import validate
from serving_bench.datasets.fetch import Progress
from serving_bench.datasets.hub_errors import Wanted

ROOT = Path(__file__).resolve().parents[3]
TOKEN = "hf_secret_of_the_tests"
CALLS = b'{"session_id":"a","turns":[{"role":"user","text":"hello"}]}\n' * 20_000
ROOMS = b"conversation_id,room,room_turn\na,a,0\n"
LOCK = f"""\
# Locked.
datasets:
  calls:
    format: multi_turn
    repo: org/calls # private
    revision: {COMMIT}
    file: calls.jsonl
    sha256: {hashlib.sha256(CALLS).hexdigest()}
    bytes: {len(CALLS)}
    rooms-file: rooms.csv
    rooms-sha256: {hashlib.sha256(ROOMS).hexdigest()}

  here: {{path: here.jsonl, sha256: {hashlib.sha256(b"{}").hexdigest()}}}
  made:
    generator: voice-agent
    arguments: {{rooms: 2, warmup_rooms: 0}}
    sha256: {"0" * 64}
"""


@dataclass
class Place:
    """A repository with a lock, a home, and a Hub."""

    fake: FakeHub
    folder: Path

    @property
    def lock(self) -> Path:
        return self.folder / "configs/datasets.lock.yaml"

    def env(self, **changes: str) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("HF_", "GITHUB_"))}
        mine = {"HF_ENDPOINT": self.fake.url, "HF_HOME": str(self.folder / "hf"), "HF_TOKEN": TOKEN}
        places = {"HOME": str(self.folder), "TMPDIR": str(self.folder)}
        return kept | places | mine | changes

    def start(self, *args: str, **env: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "serving_bench", "fetch", *args]
        pipe = subprocess.PIPE
        return subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, cwd=self.folder, env=self.env(**env))

    def fetch(self, *args: str, **env: str) -> tuple[int, str, str]:
        process = self.start(*args, **env)
        out, err = process.communicate(timeout=60)
        assert TOKEN not in out + err
        return process.returncode, out, err

    def entry(self, name: str) -> dict[str, object]:
        found: dict[str, object] = yaml.safe_load(self.lock.read_text())["datasets"][name]
        return found

    def blobs(self, suffix: str = "") -> list[Path]:
        return list((self.folder / "hf").rglob(f"blobs/*{suffix}"))


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    repo = Repo({"calls.jsonl": CALLS, "rooms.csv": ROOMS}, token=TOKEN, large=True)
    with running({"org/calls": repo}) as fake:
        place = Place(fake, tmp_path)
        place.lock.parent.mkdir()
        place.lock.write_text(LOCK)
        (tmp_path / "here.jsonl").write_bytes(b"{}")
        yield place


def test_a_private_dataset_needs_a_lock_entry_and_a_token_alone(place: Place) -> None:
    status, out, err = place.fetch("calls", "here")
    assert (status, err) == (0, "")
    first, second = out.splitlines()
    path = place.folder / f"hf/hub/datasets--org--calls/snapshots/{COMMIT}/calls.jsonl"
    assert first == f"calls: {path}: {len(CALLS):,} bytes, as locked"
    assert second.startswith("here: ")
    assert path.read_bytes() == CALLS
    assert path.with_name("rooms.csv").read_bytes() == ROOMS
    kept = [path for path in place.folder.rglob("*") if path.is_file()]
    assert [path for path in kept if TOKEN.encode() in path.read_bytes()] == []


def test_after_a_fetch_the_hub_may_be_out_of_reach(place: Place) -> None:
    assert place.fetch("calls")[0] == 0
    asked = len(place.fake.seen)
    code = (
        "import sys; from pathlib import Path\n"
        "from serving_bench.datasets.fetch import locked\n"
        "from serving_bench.datasets.store import materialize\n"
        "spec = locked(Path('configs/datasets.lock.yaml'))['calls']\n"
        "found = materialize(spec, Path(), Path('scratch'))\n"
        "print(found.conversations.stat().st_size, found.rooms.read_text())\n"
    )
    for env in ({"HF_HUB_OFFLINE": "1"}, {"HF_ENDPOINT": "http://127.0.0.1:1"}):
        command = [sys.executable, "-c", code]
        done = subprocess.run(
            command, env=place.env(**env), cwd=place.folder, capture_output=True, text=True, check=True, timeout=60
        )
        assert done.stdout.startswith(f"{len(CALLS)} conversation_id,")
    assert len(place.fake.seen) == asked


def test_offline_without_the_file_says_what_to_do(place: Place) -> None:
    status, _, err = place.fetch("calls", HF_HUB_OFFLINE="1")
    assert status == 1
    assert "[SB-HUB-OFFLINE]" in err
    assert "hint: run `serving-bench fetch`" in err
    assert place.fake.seen == []


def test_a_killed_fetch_is_resumed_by_the_next(place: Place) -> None:
    place.fake.fail("GET", Fault(), Fault(pause_s=0.5))  # the redirect, then the file: slow enough to be seen half done
    process = place.start("calls")
    deadline = time.monotonic() + 30
    while not any(path.stat().st_size > 300_000 for path in place.blobs(".incomplete")):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    (partial,) = place.blobs(".incomplete")
    there = partial.stat().st_size
    assert 0 < there < len(CALLS)
    assert place.fetch("calls")[0] == 0
    resumed = [one.headers["range"] for one in place.fake.asked("GET", "cdn") if "range" in one.headers]
    assert resumed == [f"bytes={there}-"]
    assert place.blobs(".incomplete") == []


def test_two_processes_at_once_load_the_file_once(place: Place) -> None:
    place.fake.fail("GET", Fault(), Fault(pause_s=0.05))
    both = [place.start("calls") for _ in range(2)]
    assert [process.communicate(timeout=60)[1] for process in both] == ["", ""]
    loaded = [one.path for one in place.fake.asked("GET", "cdn")]
    assert sorted(path.rsplit("/", 1)[1] for path in loaded) == ["calls.jsonl", "rooms.csv"]


def test_another_cache_can_be_given(place: Place) -> None:
    assert place.fetch("calls", "--cache", "elsewhere")[0] == 0
    assert (place.folder / f"elsewhere/datasets--org--calls/snapshots/{COMMIT}/calls.jsonl").exists()
    assert not (place.folder / "hf").exists()


def test_no_access_is_one_error_with_a_hint(place: Place) -> None:
    status, _, err = place.fetch("calls", HF_TOKEN="hf_of_someone_else")
    assert status == 1
    first, second = err.splitlines()
    assert first.endswith("[SB-HUB-ACCESS]")
    assert second.startswith("hint: ")
    assert "someone_else" not in err


def test_the_digest_of_a_generated_dataset_is_checked(place: Place) -> None:
    status, _, err = place.fetch("made")
    assert status == 1
    assert "[SB-DATASET-DIGEST]" in err
    assert place.fetch("--update", "made")[0] == 0
    assert set(place.entry("made")) == {"generator", "arguments", "sha256", "bytes", "rooms-sha256"}
    status, out, _ = place.fetch()
    assert status == 0
    assert [line.partition(":")[0] for line in out.splitlines()] == ["calls", "here", "made"]


def test_update_locks_the_current_revision_and_leaves_all_else(place: Place) -> None:
    new = CALLS + b"{}\n"
    place.fake.repos["org/calls"].files["calls.jsonl"] = new
    place.fake.repos["org/calls"].commit = "c" * 40
    status, out, err = place.fetch("--update", "calls")
    assert (status, err) == (0, "")
    assert f"calls: revision: {'c' * 40}\n" in out
    changed = LOCK.replace(COMMIT, "c" * 40).replace(f"bytes: {len(CALLS)}", f"bytes: {len(new)}")
    changed = changed.replace(hashlib.sha256(CALLS).hexdigest(), hashlib.sha256(new).hexdigest())
    assert place.lock.read_text() == changed
    assert place.fetch("calls")[0] == 0


def test_update_adds_an_entry_that_is_valid(place: Place) -> None:
    status, _, err = place.fetch("--update", "more", "--repo", "org/calls", "--file", "calls.jsonl")
    assert (status, err) == (0, "")
    assert place.lock.read_text().startswith(LOCK)
    assert place.entry("more") == {
        "repo": "org/calls",
        "revision": COMMIT,
        "file": "calls.jsonl",
        "sha256": hashlib.sha256(CALLS).hexdigest(),
        "bytes": len(CALLS),
    }
    assert validate(parse("lock", place.lock.read_bytes()), DatasetsYaml) is not None
    assert place.fetch("more")[0] == 0


def test_update_begins_a_lock_where_there_is_none(place: Place) -> None:
    place.lock.unlink()
    assert place.fetch("--update", "more", "--repo", "org/calls", "--file", "calls.jsonl")[0] == 0
    assert place.entry("more")["repo"] == "org/calls"


def test_a_failed_update_leaves_the_lock_alone(place: Place) -> None:
    assert place.fetch("--update", "calls", "--file", "other.jsonl")[0] == 1
    assert place.lock.read_text() == LOCK


@pytest.mark.parametrize(
    ("args", "status", "code"),
    [
        (["nothing"], 1, "SB-DATASET-UNKNOWN"),
        (["--update", "nothing"], 2, "SB-USAGE"),
        (["--repo", "a/b"], 2, "--update"),
        (["calls", "--update", "calls"], 2, "--update"),
        (["--config-dir", "nowhere"], 1, "SB-FILE-MISSING"),
    ],
)
def test_wrong_use_is_told(place: Place, args: list[str], status: int, code: str) -> None:
    found, _, err = place.fetch(*args)
    assert (found, code in err) == (status, True)
    assert "Traceback" not in err


@pytest.mark.parametrize(
    "text", ["datasets: []\n", "datasets:\n  calls: 1\n", "\x00", "a: b\n", "datasets: {calls: {}}\n"]
)
@pytest.mark.parametrize("args", [[], ["--update", "calls"]])
def test_a_lock_that_is_none_is_told(place: Place, text: str, args: list[str]) -> None:
    place.lock.write_text(text)
    status, _, err = place.fetch(*args)
    assert status in {1, 2}
    assert "[SB-" in err
    assert "Traceback" not in err


def test_a_line_is_shown_while_something_long_is_loaded() -> None:
    out = io.StringIO()
    times = iter([0.0, 5.0, 10.0, 12.0, 21.0])
    progress = Progress(out, lambda: next(times))
    for done in (1, 2, 3, 4, 5):
        progress(Wanted("calls", "org/calls", COMMIT, "c.jsonl"), done * 1_000, 10_000 if done < 5 else None)
    assert out.getvalue().splitlines() == ["calls: c.jsonl: 3,000 of 10,000 (30%) bytes", "calls: c.jsonl: 5,000 bytes"]


def test_render_does_not_load_what_only_the_hub_needs() -> None:
    code = (
        "import sys; from serving_bench import cli\n"
        "status = cli.run(['render', '--check', '--config-dir', sys.argv[1]], {})\n"
        "print(status, 'huggingface_hub' in sys.modules, 'httpx2' in sys.modules)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(ROOT / "configs")], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.splitlines()[-1] == "0 False False"

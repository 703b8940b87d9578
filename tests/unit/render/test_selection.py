"""Which configs run: a real git repository, changed in every way that counts, and in some that do not."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from serving_bench.errors import ConfigError, InputError
from serving_bench.render.options import RenderOptions
from serving_bench.render.selection import Selection, decide_sweep, listed, select

from .conftest import Repository, config_text


def changed(repository: Repository, *names: str, ref: str = "main") -> Selection:
    return select(RenderOptions(repository.configs, names, changed_from=ref), os.environ)


def announced(repository: Repository, ref: str = "main") -> Selection:
    return select(RenderOptions(repository.configs, changelog_from=ref), os.environ)


def codes(selection: Selection) -> list[str]:
    return [notice.code for notice in selection.notices]


def test_without_a_reference_names_are_what_they_are(repository: Repository) -> None:
    assert select(RenderOptions(repository.configs, ("x",)), {}) == Selection(("x",))
    assert select(RenderOptions(repository.configs), {}) == Selection(())


def test_nothing_changed(repository: Repository) -> None:
    found = changed(repository)
    assert found.names is None
    assert codes(found) == ["SB-NOTHING-CHANGED"]


@pytest.mark.parametrize("committed", [True, False])
@pytest.mark.parametrize(
    ("file", "old", "new", "names"),
    [
        ("serving/a.yaml", "[4, 8]", "[4, 9]", ("a", "c")),
        ("serving/c.yaml", "[2]", "[3]", ("c",)),
        ("serving/b.yaml", "conc: [4, 8]\n", "conc:\n- 4\n- 8\n", None),
        ("serving/b.yaml", "conc", "# a remark\nconc", None),
        ("scenarios.yaml", "duration-s: 600", "duration-s: 300", ("b",)),
        ("scenarios.yaml", "  chats", "  new: {dataset: small, load: {requests: 1}}\n  chats", None),
        ("clusters.yaml", "max-parallel: 2", "max-parallel: 3", ("b",)),
        ("clusters.yaml", "ubuntu-latest", "ubuntu-24.04", ("a", "c")),
        ("datasets.lock.yaml", "a" * 64, "c" * 64, ("a", "c")),
    ],
)
def test_what_a_change_selects(
    repository: Repository, *, file: str, old: str, new: str, names: tuple[str, ...] | None, committed: bool
) -> None:
    repository.replace(file, old, new)
    if committed:
        repository.commit()
    assert changed(repository).names == names


def test_what_the_base_branch_did_meanwhile_does_not_count(repository: Repository) -> None:
    repository.git("checkout", "-q", "main")
    repository.replace("serving/b.yaml", "[4, 8]", "[1]")
    repository.commit()
    repository.git("checkout", "-q", "work")
    repository.replace("serving/c.yaml", "[2]", "[3]")
    repository.commit()
    assert changed(repository).names == ("c",)


def test_new_renamed_and_deleted_configs(repository: Repository) -> None:
    repository.write("serving/new.yaml", config_text())
    (repository.configs / "serving/b.yaml").rename(repository.configs / "serving/d.yaml")
    repository.write("serving/deep/e.yaml", "not: a config\n")
    found = changed(repository)
    assert found.names == ("d", "new")
    assert codes(found) == ["SB-CONFIG-DELETED", "SB-CONFIG-SELECTED"]
    assert "b" in found.notices[0].message
    repository.commit()
    assert changed(repository).names == ("d", "new")


def test_a_file_that_cannot_be_read_counts_as_changed(repository: Repository) -> None:
    repository.replace("serving/b.yaml", "model", "model: [\nmodel")
    assert changed(repository).names == ("b",)
    repository.commit()
    repository.git("branch", "-f", "main")
    repository.git("checkout", "-q", "-b", "next")
    repository.write("serving/b.yaml", config_text("chats", "two"))
    assert changed(repository).names == ("b",)


def test_names_restrict_what_changed(repository: Repository) -> None:
    repository.replace("serving/a.yaml", "[4, 8]", "[4, 9]")
    assert changed(repository, "c", "b").names == ("c",)
    found = changed(repository, "b")
    assert found.names is None
    assert codes(found) == ["SB-NOTHING-NAMED"]


def test_the_reason_is_said(repository: Repository) -> None:
    repository.replace("serving/a.yaml", "[4, 8]", "[4, 9]")
    (notice,) = changed(repository).notices
    assert notice.message == "a (changed), c (extends a)"


@pytest.mark.parametrize("ref", ["-x", "--output=/tmp/x", "", "a\0b"])
def test_a_reference_that_git_would_take_for_something_else(repository: Repository, ref: str) -> None:
    with pytest.raises(InputError) as caught:
        changed(repository, ref=ref)
    assert caught.value.code == "SB-GIT-REF"


def test_an_unknown_reference(repository: Repository) -> None:
    with pytest.raises(InputError) as caught:
        changed(repository, ref="nowhere")
    assert caught.value.code == "SB-GIT-REF"


def test_no_repository(tmp_path: Path) -> None:
    (tmp_path / "configs/serving").mkdir(parents=True)
    (tmp_path / "configs/serving/a.yaml").write_text(config_text())
    env = {**os.environ, "GIT_CEILING_DIRECTORIES": str(tmp_path.parent)}
    with pytest.raises(InputError) as caught:
        select(RenderOptions(tmp_path / "configs", changed_from="main"), env)
    assert caught.value.code == "SB-GIT"


def test_without_git(repository: Repository, tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        select(RenderOptions(repository.configs, changed_from="main"), {"PATH": str(tmp_path)})
    assert caught.value.code == "SB-GIT"


def test_a_shallow_clone_says_what_it_needs(repository: Repository, tmp_path: Path) -> None:
    for number in range(3):
        repository.commit(f"change {number}")
    shallow = tmp_path / "shallow"
    source = f"file://{repository.path}"
    subprocess.run(["git", "clone", "-q", "--depth=1", "--no-single-branch", source, str(shallow)], check=True)
    options = RenderOptions(shallow / "configs", changed_from="origin/main")
    with pytest.raises(InputError) as caught:
        select(options, os.environ)
    assert caught.value.code == "SB-GIT-HISTORY"
    assert "fetch-depth: 0" in (caught.value.hint or "")


def entry(configs: str, description: str = "a better flag") -> str:
    return f"- configs: [{configs}]\n  description: {description}\n  link: https://example.org/1\n"


@pytest.fixture
def logged(repository: Repository) -> Repository:
    """The repository, with two changelog entries on main."""
    repository.write("perf-changelog.yaml", entry("a", "first") + entry("b", "second"))
    repository.commit()
    repository.git("branch", "-f", "main")
    return repository


def test_appended_entries_name_configs(logged: Repository) -> None:
    with (logged.configs / "perf-changelog.yaml").open("a") as out:
        out.write(entry("b, '[a-a]'", "third"))
    found = announced(logged)
    assert found.names == ("a", "b")
    assert codes(found) == ["SB-CONFIG-SELECTED"]


def test_no_new_entry(logged: Repository) -> None:
    found = announced(logged)
    assert found.names is None
    assert codes(found) == ["SB-NOTHING-ANNOUNCED"]


def test_the_first_entry_ever(repository: Repository) -> None:
    assert announced(repository).names is None
    repository.write("perf-changelog.yaml", "# nothing yet\n")
    assert announced(repository).names is None
    repository.write("perf-changelog.yaml", entry("c"))
    assert announced(repository).names == ("c",)


def test_layout_and_remarks_are_no_edit(logged: Repository) -> None:
    logged.replace("perf-changelog.yaml", "- configs: [a]", "# a remark\n- configs:\n  - a")
    assert codes(announced(logged)) == ["SB-NOTHING-ANNOUNCED"]


@pytest.mark.parametrize(
    ("text", "line", "code"),
    [
        (entry("a", "FIRST") + entry("b", "second"), 1, "SB-CHANGELOG-EDITED"),
        (entry("b", "second") + entry("a", "first"), 1, "SB-CHANGELOG-EDITED"),
        (entry("a", "first"), 1, "SB-CHANGELOG-EDITED"),
        (entry("a", "first") + entry("c") + entry("b", "second"), 4, "SB-CHANGELOG-EDITED"),
        (entry("a", "first") + entry("b", "second") + entry("a, nowhere"), 7, "SB-CHANGELOG-CONFIG"),
        (entry("a", "first") + entry("b", "second") + entry("'x*'"), 7, "SB-CHANGELOG-CONFIG"),
        (entry("a", "first") + entry("b", "second") + "- configs: []\n", 7, "SB-KEY-MISSING"),
        ("first: second\n", 1, "SB-TYPE"),
        ("- [\n", 2, "SB-YAML-SYNTAX"),
    ],
)
def test_what_is_wrong_with_a_changelog(logged: Repository, text: str, line: int, code: str) -> None:
    logged.write("perf-changelog.yaml", text)
    with pytest.raises(ConfigError) as caught:
        announced(logged)
    found = [(problem.path, problem.line, problem.code) for problem in caught.value.problems]
    assert ("configs/perf-changelog.yaml", line, code) in found


def test_a_removed_changelog_is_an_edit(logged: Repository) -> None:
    (logged.configs / "perf-changelog.yaml").unlink()
    with pytest.raises(ConfigError) as caught:
        announced(logged)
    assert caught.value.code == "SB-CHANGELOG-EDITED"


def test_changed_and_announced_add_up(logged: Repository) -> None:
    logged.replace("serving/c.yaml", "[2]", "[3]")
    with (logged.configs / "perf-changelog.yaml").open("a") as out:
        out.write(entry("b"))
    options = RenderOptions(logged.configs, changed_from="main", changelog_from="main")
    assert select(options, os.environ).names == ("b", "c")


def pull_request(head: str, *, fork: bool = False, label: str = "full-sweep-enabled") -> dict[str, Any]:
    owner = "someone" if fork else "org"
    pull = {
        "labels": [{"name": label}],
        "head": {"sha": head, "repo": {"full_name": f"{owner}/repo"}},
        "base": {"repo": {"full_name": "org/repo"}},
    }
    return {"action": "labeled", "pull_request": pull, "label": {"name": label}, "sender": {"login": "m"}}


def with_event(repository: Repository, event: Any, permission: str | None = None, name: str = "") -> RenderOptions:
    path = repository.path / "event.json"
    path.write_text(json.dumps(event))
    return RenderOptions(repository.configs, event=path, event_name=name, permission=permission)


def test_a_label_on_a_branch(repository: Repository) -> None:
    sweep = decide_sweep(with_event(repository, pull_request(repository.commit())), os.environ)
    assert (sweep.runs, sweep.canary) == (True, True)


def test_the_head_commits_message_is_read_from_git(repository: Repository) -> None:
    head = repository.commit("quick fix [skip-sweep]")
    repository.git("checkout", "-q", "main")
    repository.commit()
    repository.git("merge", "-q", "--no-ff", "-m", "merge", "work")
    sweep = decide_sweep(with_event(repository, pull_request(head)), os.environ)
    assert sweep.code == "SB-SWEEP-SKIPPED"


def test_a_head_commit_that_is_not_here(repository: Repository) -> None:
    with pytest.raises(InputError) as caught:
        decide_sweep(with_event(repository, pull_request("f" * 40)), os.environ)
    assert caught.value.code == "SB-GIT-HISTORY"


def test_nothing_is_asked_of_git_where_nothing_runs(repository: Repository) -> None:
    event = pull_request("f" * 40, label="bug")
    assert decide_sweep(with_event(repository, event), {"PATH": ""}).code == "SB-SWEEP-OTHER-LABEL"


def test_a_fork_runs_at_the_commit_that_was_labelled_or_githubs_merge_of_it(repository: Repository) -> None:
    head = repository.commit()
    options = with_event(repository, pull_request(head, fork=True), "write")
    assert decide_sweep(options, os.environ).pinned
    repository.git("checkout", "-q", "main")
    repository.commit()
    repository.git("merge", "-q", "--no-ff", "-m", "merge", "work")
    assert decide_sweep(options, os.environ).runs


def test_a_fork_does_not_run_at_another_commit(repository: Repository) -> None:
    head = repository.commit()
    repository.commit("pushed after the label")
    with pytest.raises(InputError) as caught:
        decide_sweep(with_event(repository, pull_request(head, fork=True), "write"), os.environ)
    assert caught.value.code == "SB-SWEEP-SHA"
    # The base branch's own commit is the merge's first parent, and not what the label was set on.
    base = repository.git("rev-parse", "HEAD")
    repository.git("checkout", "-q", "-b", "other", "main")
    repository.commit()
    repository.git("checkout", "-q", "work")
    repository.git("merge", "-q", "--no-ff", "-m", "merge", "other")
    with pytest.raises(InputError) as caught:
        decide_sweep(with_event(repository, pull_request(base, fork=True), "write"), os.environ)
    assert caught.value.code == "SB-SWEEP-SHA"


def test_events_without_labels(repository: Repository) -> None:
    asked = with_event(repository, {"inputs": {}}, name="workflow_dispatch")
    assert decide_sweep(asked, {}).runs
    push = with_event(repository, {"head_commit": {"message": "x [skip-sweep]"}}, name="push")
    assert decide_sweep(push, {}).code == "SB-SWEEP-SKIPPED"
    other = with_event(repository, {"issue": {}}, name="issue_comment")
    assert decide_sweep(other, {}).code == "SB-SWEEP-EVENT"


def test_a_long_list_is_cut() -> None:
    assert listed(["a", "b"]) == "a, b"
    assert listed([str(number) for number in range(25)]).endswith("18, 19 and 5 more")

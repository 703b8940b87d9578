"""The runner's protocol: outputs, summary, groups, masks and escaped annotations.

Everything takes the environment as a mapping, so that callers and tests decide
what the runner is. Outside a runner the functions do nothing or print plainly.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TextIO

from serving_bench.errors import Problem

SUMMARY_LIMIT_BYTES = 900 * 1024
"""Below the runner's 1,024 KiB, at which a step's whole summary is dropped."""


def on_runner(env: Mapping[str, str]) -> bool:
    return env.get("GITHUB_ACTIONS") == "true"


def escape_data(text: str) -> str:
    """Escape the message part of a workflow command."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def escape_property(text: str) -> str:
    """Escape a property (file, title, …) of a workflow command."""
    return escape_data(text).replace(":", "%3A").replace(",", "%2C")


def annotation(level: str, message: str, **properties: object) -> str:
    """One ``::error …::`` line; level is ``error``, ``warning`` or ``notice``."""
    inside = ",".join(f"{key}={escape_property(str(value))}" for key, value in properties.items() if value is not None)
    return f"::{level}{' ' + inside if inside else ''}::{escape_data(message)}"


def problem_annotation(problem: Problem) -> str:
    """A config problem as an annotation at its line of its file."""
    message = f"{problem.key}: {problem.message}" if problem.key else problem.message
    level = "error" if problem.severity == "error" else "warning"
    if not problem.line:
        return annotation(level, f"{problem.path}: {message}", title=problem.code)
    return annotation(level, message, file=problem.path, line=problem.line, col=problem.column, title=problem.code)


def set_output(env: Mapping[str, str], name: str, value: str) -> None:
    """Append an output in the runner's heredoc form, with a delimiter that cannot occur in it."""
    target = env.get("GITHUB_OUTPUT")
    if not target:
        return
    delimiter = f"sb-{os.urandom(16).hex()}"
    with Path(target).open("a", encoding="utf-8", errors="surrogateescape") as out:
        out.write(f"{name}<<{delimiter}\n{value}\n{delimiter}\n")


def append_summary(env: Mapping[str, str], markdown: str) -> bool:
    """Append to the job summary; false if there is none or the text is over the limit."""
    target = env.get("GITHUB_STEP_SUMMARY")
    if not target or len(markdown.encode(errors="backslashreplace")) > SUMMARY_LIMIT_BYTES:
        return False
    with Path(target).open("a", encoding="utf-8", errors="backslashreplace") as out:
        out.write(markdown if markdown.endswith("\n") else markdown + "\n")
    return True


_COMMANDS = re.compile(r"^(\s*)(?=::)|(?<=##)(?=\[)", re.MULTILINE)


def harmless(env: Mapping[str, str], text: str) -> str:
    """Text from elsewhere, such as a name or a log line, in which the runner finds no command of its own.

    The runner obeys ``::name::`` at the start of a line and ``##[name]`` anywhere; a zero-width space breaks both.
    """
    return _COMMANDS.sub("\\1\u200b", text) if on_runner(env) else text


class Groups:
    """Foldable groups in the log of a step; plain headings elsewhere."""

    def __init__(self, env: Mapping[str, str], out: TextIO) -> None:
        self._folded = on_runner(env)
        self._out = out

    def start(self, title: str) -> None:
        print(f"::group::{escape_data(title)}" if self._folded else f"== {title}", file=self._out, flush=True)

    def end(self) -> None:
        if self._folded:
            print("::endgroup::", file=self._out, flush=True)

"""Environments: what processes inherit, and what may be written down of them."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from serving_bench.contracts import Plan

MASK = "***"
_SCRUBBED = re.compile(r"(?:DYN_|VLLM_NIXL_|VLLM_DP_).*|CUDA_VISIBLE_DEVICES\Z")
_PYTHON = ("PYTHONHOME", "PYTHONPATH", "VIRTUAL_ENV", "__PYVENV_LAUNCHER__")
_SECRET_WORDS = frozenset({"TOKEN", "TOKENS", "KEY", "KEYS", "SECRET", "SECRETS", "PASSWORD", "PASSWD", "CREDENTIALS"})
_SECRET_FLAG = re.compile(
    r"--?[\w-]*(?:api[-_]?key|secret|password|credential|(?:auth|access|hf|bearer)[-_]?token)[\w-]*", re.IGNORECASE
)


def inherited(env: Mapping[str, str], bench_env: Path | None) -> dict[str, str]:
    """What every process inherits: the caller's environment without what would steer the deployment.

    All of Dynamo's variables go, not only ports: flags such as the router's mode
    have a variable as their default, and a run must measure what its plan says.
    """
    kept = {name: value for name, value in env.items() if not _SCRUBBED.match(name)}
    for name in ("NO_PROXY", "no_proxy"):
        kept[name] = ",".join(filter(None, (env.get(name), "127.0.0.1,localhost")))
    if bench_env is not None:
        kept = {name: value for name, value in kept.items() if name not in _PYTHON}
        kept["VIRTUAL_ENV"] = str(bench_env)
        kept["PATH"] = os.pathsep.join(filter(None, (str(bench_env / "bin"), env.get("PATH"))))
    return kept


def hf_home(env: Mapping[str, str]) -> Path:
    """The user's Hugging Face cache folder."""
    # expanduser leaves ~ alone where neither HOME nor the password file knows a home, as in many containers.
    home = env.get("HOME") or os.path.expanduser("~")  # noqa: PTH111  Path.home() raises there
    return Path(env.get("HF_HOME") or Path(home) / ".cache" / "huggingface").absolute()


def is_secret_name(name: str) -> bool:
    """Whether a variable's name says that its value is a secret: a word of it, not a part of a word."""
    words = name.upper().split("_")
    return any(word in _SECRET_WORDS for word in words) or words[-1].endswith(("KEY", "PASSWORD"))


def masked_env(env: Mapping[str, str]) -> dict[str, str]:
    """For writing down: values of secret-looking names are replaced."""
    return {name: MASK if is_secret_name(name) else value for name, value in sorted(env.items())}


def masked_argv(argv: Sequence[str]) -> list[str]:
    """For writing down: the value after (or in) a flag such as ``--api-key`` is replaced."""
    shown: list[str] = []
    hide = False
    for word in argv:
        flag, equals, _ = word.partition("=")
        secret = _SECRET_FLAG.fullmatch(flag) is not None
        shown.append(MASK if hide else f"{flag}={MASK}" if secret and equals else word)
        hide = secret and not equals
    return shown


def masked_plan(plan: Plan) -> Plan:
    """The plan as the run directory keeps it."""
    engine = plan.engine.model_copy(
        update={"env": masked_env(plan.engine.env), "argv": tuple(masked_argv(plan.engine.argv))}
    )
    router = plan.router and plan.router.model_copy(
        update={"env": masked_env(plan.router.env), "argv": tuple(masked_argv(plan.router.argv))}
    )
    return plan.model_copy(update={"engine": engine, "router": router})

"""What processes inherit, and what is written down of environments and commands."""

from __future__ import annotations

from pathlib import Path

import pytest

from serving_bench.launch.environ import hf_home, inherited, is_secret_name, masked_argv, masked_env


def test_what_would_steer_the_deployment_is_scrubbed() -> None:
    env = {
        "PATH": "/bin", "HOME": "/home/me", "DYN_SYSTEM_PORT": "1", "DYN_ROUTER_MODE": "random", "DYN_LOG": "debug",
        "VLLM_NIXL_SIDE_CHANNEL_PORT": "2", "CUDA_VISIBLE_DEVICES": "0", "CUDA_VISIBLE_DEVICES_X": "kept",
        "VLLM_LOGGING_LEVEL": "INFO", "XDYN_": "kept", "NO_PROXY": "example.org",
    }  # fmt: skip
    assert inherited(env, None) == {
        "PATH": "/bin", "HOME": "/home/me", "CUDA_VISIBLE_DEVICES_X": "kept", "VLLM_LOGGING_LEVEL": "INFO",
        "XDYN_": "kept", "NO_PROXY": "example.org,127.0.0.1,localhost", "no_proxy": "127.0.0.1,localhost",
    }  # fmt: skip


def test_the_bench_environment_comes_first_and_the_callers_python_stays_out() -> None:
    env = {"PATH": "/usr/bin:/bin", "PYTHONPATH": "/x", "PYTHONHOME": "/y", "VIRTUAL_ENV": "/toolkit"}
    found = inherited(env, Path("/bench"))
    assert found["PATH"] == "/bench/bin:/usr/bin:/bin"
    assert found["VIRTUAL_ENV"] == "/bench"
    assert not {"PYTHONPATH", "PYTHONHOME"} & set(found)
    assert inherited({}, Path("/bench"))["PATH"] == "/bench/bin"


@pytest.mark.parametrize(
    ("env", "expected"),
    [
        ({"HF_HOME": "/hf", "HOME": "/home/me"}, "/hf"),
        ({"HOME": "/home/me"}, "/home/me/.cache/huggingface"),
    ],
)
def test_the_users_model_cache_is_kept(env: dict[str, str], expected: str) -> None:
    assert hf_home(env) == Path(expected)


@pytest.mark.parametrize(
    ("name", "secret"),
    [
        ("HF_TOKEN", True), ("OPENAI_API_KEY", True), ("token", True), ("AWS_SECRET_ACCESS_KEY", True),
        ("DB_PASSWORD", True), ("APIKEY", True), ("GITHUB_TOKEN_FILE", True), ("MY_SECRETS", True),
        ("TOKENIZERS_PARALLELISM", False), ("DYN_TOKENIZER", False), ("KEYBOARD", False), ("VLLM_LOGGING_LEVEL", False),
    ],
)  # fmt: skip
def test_secret_names(name: str, secret: bool) -> None:
    assert is_secret_name(name) is secret
    assert masked_env({name: "value"}) == {name: "***" if secret else "value"}


def test_commands_are_masked_where_a_flag_says_secret_and_nowhere_else() -> None:
    argv = [
        "x", "--api-key", "abc", "--hf-token=def", "--max-num-batched-tokens", "8192", "--tokenizer", "t",
        "--use-server-token-count", "--long-prefill-token-threshold", "2048", "--api_key=ghi", "--password", "jkl",
        "--port",
    ]  # fmt: skip
    assert masked_argv(argv) == [
        "x", "--api-key", "***", "--hf-token=***", "--max-num-batched-tokens", "8192", "--tokenizer", "t",
        "--use-server-token-count", "--long-prefill-token-threshold", "2048", "--api_key=***", "--password", "***",
        "--port",
    ]  # fmt: skip

"""Processes of a deployment, against expectations written by hand."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from serving_bench.contracts import ModelSpec, Plan, ProcessSpec
from serving_bench.engines.base import ModelSource, ReplicaPorts
from serving_bench.errors import InputError, SystemUnderTestError
from serving_bench.launch.topology import (
    Folders,
    block_size,
    build,
    check_plan,
    gpu_slices,
    model_source,
    port_map,
)

VLLM = ProcessSpec(
    kind="dynamo.vllm",
    argv=("python3", "-m", "dynamo.vllm", "--tensor-parallel-size", "2"),
    env={"VLLM_LOGGING_LEVEL": "INFO"},
)
DYNAMO = {
    "DYN_NAMESPACE": "ns",
    "DYN_DISCOVERY_BACKEND": "file",
    "DYN_FILE_KV": "/scratch/discovery/start0",
    "DYN_REQUEST_PLANE": "tcp",
    "DYN_EVENT_PLANE": "zmq",
    "DYN_EVENT_PLANE_HOST": "127.0.0.1",
    "DYN_TCP_RPC_HOST": "127.0.0.1",
    "DYN_SDK_DISABLE_ANSI_LOGGING": "1",
    "PYTHONUNBUFFERED": "1",
    "TMPDIR": "/scratch/tmp",
}
PRIVATE_HOME = {"HOME": "/scratch/home", "HF_HOME": "/home/me/.cache/huggingface"}


def test_two_mocker_replicas(make_plan: Callable[..., Plan], folders: Folders) -> None:
    plan = make_plan()
    assert block_size(plan) == 7
    first, second = build(plan, port_map(plan, 20_000), folders, "ns").replicas
    assert first.argv == (
        "python3", "-m", "dynamo.mocker", "--block-size", "16",
        "--model-path", "org/model", "--model-name", "demo", "--zmq-kv-events-ports", "20003",
    )  # fmt: skip
    assert first.env == {
        **DYNAMO,
        **PRIVATE_HOME,
        "DYN_SYSTEM_HOST": "127.0.0.1",
        "DYN_SYSTEM_PORT": "20001",
        "DYN_SYSTEM_USE_ENDPOINT_HEALTH_STATUS": '["generate"]',
    }
    assert (first.name, first.index, first.gpus) == ("replica.0", 0, ())
    assert first.log == Path("/out/server.0.log")
    assert first.ports == (20_001, 20_003, 20_005)
    assert first.health_url == "http://127.0.0.1:20001/health"
    assert first.metrics_url == "http://127.0.0.1:20001/metrics"
    assert second.argv[-2:] == ("--zmq-kv-events-ports", "20004")
    assert second.env == {**first.env, "DYN_SYSTEM_PORT": "20002"}
    assert second.log == Path("/out/server.1.log")
    assert second.ports == (20_002, 20_004, 20_006)


def test_two_vllm_replicas_with_two_gpus_each(make_plan: Callable[..., Plan], folders: Folders) -> None:
    plan = make_plan(engine=VLLM, framework="vllm", gpus=2)
    assert block_size(plan) == 11
    first, second = build(plan, port_map(plan, 30_000), folders, "ns").replicas
    revision = "a" * 40
    assert first.argv == (
        "python3", "-m", "dynamo.vllm", "--tensor-parallel-size", "2",
        "--model", "org/model", "--served-model-name", "demo", "--revision", revision,
        "--kv-events-config",
        '{"enable_kv_cache_events":true,"publisher":"zmq","topic":"kv-events","endpoint":"tcp://*:30003"}',
    )  # fmt: skip
    assert first.env == {
        "VLLM_LOGGING_LEVEL": "INFO",
        **DYNAMO,
        "DYN_SYSTEM_HOST": "127.0.0.1",
        "DYN_SYSTEM_PORT": "30001",
        "VLLM_NIXL_SIDE_CHANNEL_HOST": "127.0.0.1",
        "VLLM_NIXL_SIDE_CHANNEL_PORT": "30007",
        "CUDA_VISIBLE_DEVICES": "0,1",
    }, "the user's own HOME, which holds vLLM's compile caches"
    assert first.ports == (30_001, 30_003, 30_004, 30_007, 30_008)
    assert second.argv[-1].endswith('"endpoint":"tcp://*:30005"}')
    assert second.env == {
        **first.env,
        "DYN_SYSTEM_PORT": "30002",
        "VLLM_NIXL_SIDE_CHANNEL_PORT": "30009",
        "CUDA_VISIBLE_DEVICES": "2,3",
    }
    assert second.ports == (30_002, 30_005, 30_006, 30_009, 30_010)


def test_the_router_has_nothing_of_a_replica(make_plan: Callable[..., Plan], folders: Folders) -> None:
    router = ProcessSpec(
        kind="dynamo.frontend", argv=("python3", "-m", "dynamo.frontend"), env={"DYN_PARSER_VERSION": "2"}
    )
    plan = make_plan(engine=VLLM, gpus=2, router=router)
    found = build(plan, port_map(plan, 30_000), folders, "ns").router
    assert found.argv == (
        "python3", "-m", "dynamo.frontend", "--http-host", "127.0.0.1", "--http-port", "30000",
    )  # fmt: skip
    assert found.env == {
        "DYN_PARSER_VERSION": "2",
        **DYNAMO,
        **PRIVATE_HOME,
        "DYN_REQUEST_TRACE": "1",
        "DYN_REQUEST_TRACE_SINKS": "file",
        "DYN_REQUEST_TRACE_FILE_PATH": "/out/trace/start0.jsonl",
    }
    assert (found.name, found.index, found.ports) == ("router", None, (30_000,))
    assert found.log == Path("/out/router.log")


@pytest.mark.parametrize(("gpus", "replicas"), [(0, 1), (0, 2), (1, 8), (2, 4), (4, 2), (8, 1)])
def test_a_block_is_used_up_exactly_and_no_port_twice(make_plan: Callable[..., Plan], gpus: int, replicas: int) -> None:
    plan = make_plan(engine=VLLM, gpus=gpus, replicas=replicas)
    layout = port_map(plan, 1_000)
    used = [layout.router, *(port for own in layout.replicas for port in own.ports(max(1, gpus)))]
    assert sorted(used) == list(range(1_000, 1_000 + block_size(plan)))


def test_what_the_launcher_owns_wins_over_the_configs_env(make_plan: Callable[..., Plan], folders: Folders) -> None:
    engine = ProcessSpec(kind="dynamo.mocker", argv=("x",), env={"DYN_SYSTEM_PORT": "1", "OTHER": "2"})
    plan = make_plan(engine=engine)
    [first, _] = build(plan, port_map(plan, 20_000), folders, "ns").replicas
    assert (first.env["DYN_SYSTEM_PORT"], first.env["OTHER"]) == ("20001", "2")


@pytest.mark.parametrize(
    ("visible", "expected"),
    [
        (None, (("0", "1"), ("2", "3"))),
        ("4,5,6,7", (("4", "5"), ("6", "7"))),
        ("GPU-a, GPU-b ,GPU-c,GPU-d,GPU-e", (("GPU-a", "GPU-b"), ("GPU-c", "GPU-d"))),
    ],
)
def test_gpus_are_cut_from_those_that_the_launcher_may_use(
    make_plan: Callable[..., Plan], visible: str | None, expected: tuple[tuple[str, ...], ...]
) -> None:
    assert gpu_slices(make_plan(gpus=2), visible) == expected


@pytest.mark.parametrize("visible", ["", "0,1,2"])
def test_too_few_gpus_are_an_error(make_plan: Callable[..., Plan], visible: str) -> None:
    with pytest.raises(SystemUnderTestError) as caught:
        gpu_slices(make_plan(gpus=2), visible)
    assert caught.value.code == "SB-GPUS"


def test_a_local_model_is_an_absolute_folder_without_revision(make_plan: Callable[..., Plan], tmp_path: Path) -> None:
    (tmp_path / "models" / "m").mkdir(parents=True)
    plan = make_plan(model=ModelSpec(served_name="demo", path="models/m"))
    assert model_source(plan, tmp_path) == ModelSource(str(tmp_path / "models" / "m"), "demo")


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"model": ModelSpec(served_name="demo", path="no/such")}, "SB-PLAN-MODEL"),
        ({"model": ModelSpec(served_name="demo")}, "SB-PLAN-MODEL"),
        ({"engine": ProcessSpec(kind="dynamo.trtllm", argv=("x",))}, "SB-PLAN-ENGINE"),
        ({"router": None}, "SB-PLAN-ROUTER"),
        ({"router": ProcessSpec(kind="sglang-router", argv=("x",))}, "SB-PLAN-ROUTER"),
    ],
)
def test_a_plan_that_cannot_be_launched(
    make_plan: Callable[..., Plan], tmp_path: Path, changes: dict[str, object], code: str
) -> None:
    with pytest.raises(InputError) as caught:
        check_plan(make_plan(**changes), tmp_path)
    assert caught.value.code == code


def test_ports_of_a_replica_are_as_many_as_its_gpus() -> None:
    assert ReplicaPorts(10, 20, 30).ports(3) == (10, 20, 21, 22, 30, 31, 32)

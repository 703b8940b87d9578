"""Names that the launcher sets for each process itself, and that a config may therefore not set."""

from __future__ import annotations

OWNED_ENV: frozenset[str] = frozenset(
    {
        "CUDA_VISIBLE_DEVICES",
        "DYN_DISCOVERY_BACKEND",
        "DYN_EVENT_PLANE",
        "DYN_EVENT_PLANE_HOST",
        "DYN_FILE_KV",
        "DYN_HTTP_HOST",
        "DYN_HTTP_PORT",
        "DYN_KV_EVENT_PORT",
        "DYN_KV_EVENT_PORTS",
        "DYN_NAMESPACE",
        "DYN_NAMESPACE_PREFIX",
        "DYN_REQUEST_PLANE",
        "DYN_REQUEST_TRACE",
        "DYN_REQUEST_TRACE_FILE_PATH",
        "DYN_REQUEST_TRACE_SINKS",
        "DYN_SYSTEM_HOST",
        "DYN_SYSTEM_PORT",
        "DYN_SYSTEM_PORTS",
        "DYN_TCP_RPC_HOST",
        "DYN_VLLM_KV_EVENT_PORT",
        "NVIDIA_VISIBLE_DEVICES",
        "VLLM_HOST_IP",
        "VLLM_NIXL_SIDE_CHANNEL_HOST",
        "VLLM_NIXL_SIDE_CHANNEL_PORT",
        "VLLM_PORT",
    }
)

"""The generators that a lock entry may name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from serving_bench.errors import InputError

if TYPE_CHECKING:
    from serving_bench.datasets.voice_agent import Generated


def _voice_agent(arguments: Mapping[str, Any]) -> Generated:
    # Late: most who look at the table only ask for names.
    from serving_bench.datasets.voice_agent import generate  # noqa: PLC0415
    from serving_bench.datasets.voice_arguments import VoiceAgentArguments  # noqa: PLC0415

    return generate(VoiceAgentArguments.model_validate(dict(arguments)))


GENERATORS: Mapping[str, Callable[[Mapping[str, Any]], Generated]] = {"voice-agent": _voice_agent}


def run_generator(name: str, arguments: Mapping[str, Any]) -> Generated:
    """Run a generator by name; ``InputError`` (SB-LOCK-GENERATOR, SB-LOCK-ARGUMENTS)."""
    if name not in GENERATORS:
        known = ", ".join(sorted(GENERATORS))
        raise InputError(f"unknown dataset generator {name!r}, known: {known}", code="SB-LOCK-GENERATOR")
    try:
        return GENERATORS[name](arguments)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "arguments"
        raise InputError(f"generator {name}: {where}: {first['msg']}", code="SB-LOCK-ARGUMENTS") from error

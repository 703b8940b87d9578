"""What the render command was asked for."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from serving_bench.config.overrides import Overrides


@dataclass(frozen=True)
class RenderOptions:
    """``out`` None means check only; ``event`` None that no labels decide."""

    config_dir: Path
    names: tuple[str, ...] = ()
    out: Path | None = None
    overrides: Overrides = field(default_factory=Overrides)
    changed_from: str | None = None
    changelog_from: str | None = None
    event: Path | None = None
    event_name: str = ""
    """``GITHUB_EVENT_NAME``; where it is empty, the event's form says what it is."""
    permission: str | None = None
    """What the event's sender may do in the repository."""
    canary: bool = False
    fail_fast: bool = False
    split: int | None = None
    """Largest number of concurrencies in a row."""
    json_format: bool = False

"""What a router answers to render; one subclass per router, each in its own module."""

from __future__ import annotations

from typing import ClassVar


class Router:
    """A router that ``router.serve`` may name."""

    kind: ClassVar[str]
    """Registry name, as ``Plan.router.kind`` has it."""
    profile: ClassVar[str]
    """What engines call it in ``Engine.routers``."""
    words: ClassVar[tuple[str, ...]]
    """First words of ``router.serve``; ``python3`` stands for any Python."""
    owned_flags: ClassVar[tuple[str, ...]] = ()
    """Flags that the launcher sets itself."""

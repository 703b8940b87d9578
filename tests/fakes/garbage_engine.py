"""An engine that prints something that is no text, and why it cannot start, and exits with 3."""

from __future__ import annotations

import sys

sys.stdout.buffer.write(b"\x00\xff\xfe garbage \x1b[31m\n")
print("the weights have the wrong shape: expected 4096, found 17")
sys.exit(3)

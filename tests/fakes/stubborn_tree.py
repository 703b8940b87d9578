"""A process whose grandchild ignores TERM and INT, has left its group and session, and lost its parent.

Writes the pids of parent, child and grandchild to the file given as first
argument, then sleeps. With ``--quit`` the parent exits at once instead.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path


def main() -> None:
    target = Path(sys.argv[1])
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        grandchild = os.fork()
        if grandchild == 0:
            os.setsid()
            for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
                signal.signal(number, signal.SIG_IGN)
            os.write(write, str(os.getpid()).encode())
            time.sleep(600)
        os._exit(0)
    os.waitpid(child, 0)
    grandchild_pid = int(os.read(read, 32))
    partial = target.with_suffix(".partial")
    partial.write_text(f"{os.getpid()} {child} {grandchild_pid}", encoding="ascii")
    partial.rename(target)
    if "--quit" not in sys.argv:
        time.sleep(600)


main()

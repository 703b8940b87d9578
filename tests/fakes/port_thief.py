"""Takes a port of the replica that it is started as, then becomes that replica.

Arguments: a file that is created by the first theft (further starts are
honest; ``-``: none is), the environment variable that names the port or the
flag that does (without its hyphens, so that the plan has no such flag of its
own), and after ``--`` the command to become. The port is held by a child of its
own, as a stranger would hold it for as long as it lives.
"""

from __future__ import annotations

import os
import socket
import sys
import time
from pathlib import Path


def _steal(port: int) -> None:
    read, write = os.pipe()
    if os.fork() == 0:
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", port))
            taken.listen()
            os.write(write, b"x")
            time.sleep(600)
    os.read(read, 1)


def _steals(marker: Path) -> bool:
    if str(marker) == "-":
        return True
    try:
        marker.touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


def main() -> None:
    marker, name = Path(sys.argv[1]), sys.argv[2]
    command = sys.argv[sys.argv.index("--") + 1 :]
    if _steals(marker):
        _steal(int(command[command.index(f"--{name}") + 1] if name.islower() else os.environ[name]))
    else:
        print("an honest start", flush=True)
    os.execvp(command[0], command)


main()

"""An engine whose /health says 503 for ever, with a grandchild that does not want to go.

The argument is the file into which the tree's pids are written.
"""

from __future__ import annotations

import os
import subprocess
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path


class _Sick(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(503)
        self.end_headers()
        self.wfile.write(b'{"status":"notready"}')

    def log_message(self, *_: object) -> None:
        """No access log: it would push the one line that matters out of the evidence."""


def main() -> None:
    tree = Path(__file__).with_name("stubborn_tree.py")
    subprocess.Popen([sys.executable, str(tree), f"{sys.argv[1]}.{os.getpid()}"])
    print("loading weights, shard 1 of 900", flush=True)
    HTTPServer(("127.0.0.1", int(os.environ["DYN_SYSTEM_PORT"])), _Sick).serve_forever()


main()

"""Leases blocks of ports, proves that they are its own, gives them back, and says how long a lease took.

Arguments: lease folder, folder of claims, ports per block, rounds. A port is
claimed by creating ``<claims>/<port>`` exclusively: two holders of one port at
one time make that fail. With a fifth argument ``hold`` it keeps its last block
and sleeps until it is killed.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from serving_bench.launch import ports


def main() -> None:
    folder, claims = Path(sys.argv[1]), Path(sys.argv[2])
    size, rounds = int(sys.argv[3]), int(sys.argv[4])
    for _ in range(rounds):
        begun = time.perf_counter()
        lease = ports.acquire(size, folder=folder)
        print(f"{time.perf_counter() - begun:.6f}", flush=True)
        lease.release_sockets(lease.ports)  # as launch does: from here on only the record protects the block
        for port in lease.ports:
            (claims / str(port)).touch(exist_ok=False)
        if "hold" in sys.argv:
            print(f"held {lease.base}", flush=True)
            time.sleep(600)
        time.sleep(0.005)
        for port in lease.ports:
            (claims / str(port)).unlink()
        lease.close()


main()

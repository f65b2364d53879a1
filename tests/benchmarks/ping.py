"""How long PONG takes while others ask for everything: a process of its own, so that no other client delays it.

python -m tests.benchmarks.ping HOST PORT     PINGs until its standard input ends, then prints the seconds as JSON
"""

from __future__ import annotations

import json
import select
import sys
import time

from tests.benchmarks.wire_client import PONG, RawClient, command_type, ping_frame

_PAUSE = 0.01


def main(host: str, port: str) -> None:
    """Measure until standard input ends."""
    client = RawClient((host, int(port)))
    seconds: list[float] = []
    print("ready", flush=True)
    while not select.select([sys.stdin], [], [], _PAUSE)[0]:
        begun = time.perf_counter()
        answer = client.ask(ping_frame())
        seconds.append(time.perf_counter() - begun)
        assert command_type(answer) == PONG
    print(json.dumps(seconds), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])

"""Latency of PONG while other clients ask for everything, measured in a process of its own.

It also measures how late the machine wakes it up after each pause: what no server can be blamed for.

python -m tests.benchmarks.ping HOST PORT [TOKEN]     PINGs until its input ends, then prints all seconds as JSON
"""

from __future__ import annotations

import json
import select
import sys
import time

from tests.benchmarks.wire_client import PONG, RawClient, command_type, ping_frame

_PAUSE = 0.01


def main(host: str, port: str, token: str = "") -> None:
    """Measure until standard input ends."""
    client = RawClient((host, int(port)), token=token)
    seconds: list[float] = []
    late: list[float] = []
    print("ready", flush=True)
    asleep = time.perf_counter()
    while not select.select([sys.stdin], [], [], _PAUSE)[0]:
        late.append(time.perf_counter() - asleep - _PAUSE)
        begun = time.perf_counter()
        answer = client.ask(ping_frame())
        seconds.append(time.perf_counter() - begun)
        assert command_type(answer) == PONG
        asleep = time.perf_counter()
    print(json.dumps({"pings": seconds, "late": late}), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])

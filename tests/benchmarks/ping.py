"""Latency of PONG while other clients ask for everything, measured in a process of its own.

It also measures how late the machine wakes it up after each pause: what no server can be blamed for.

python -m tests.benchmarks.ping HOST PORT [TOKEN]     PINGs until its input ends, then prints all seconds as JSON
"""

from __future__ import annotations

import json
import select
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.benchmarks.measure import percentile
from tests.benchmarks.wire_client import PONG, RawClient, command_type, ping_frame
from tests.support.narrowed import present

__all__ = ["pinged", "pong_figures"]

_PAUSE = 0.01


@contextmanager
def pinged(address: tuple[str, int], token: str = "") -> Iterator[dict[str, list[float]]]:
    """PINGs of a process of its own while the block runs.

    At its end the result has two lists of seconds: ``pings``, how long each PONG took, and ``late``, how late the
    machine woke the process up.
    """
    with subprocess.Popen(
        [sys.executable, "-m", "tests.benchmarks.ping", *map(str, address), token],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as probe:
        assert present(probe.stdout).readline() == "ready\n"
        felt: dict[str, list[float]] = {"pings": [], "late": []}
        try:
            yield felt
        finally:
            felt |= json.loads(probe.communicate("", timeout=60)[0])


def pong_figures(felt: dict[str, list[float]]) -> dict[str, Any]:
    """How many PINGs there were, and percentiles of both lists, in seconds."""
    return {
        "pings": len(felt["pings"]),
        "ping_p50": percentile(felt["pings"], 0.5),
        "ping_p99": percentile(felt["pings"], 0.99),
        "ping_max": max(felt["pings"]),
        "wake_up_p99": percentile(felt["late"], 0.99),
        "wake_up_max": max(felt["late"]),
    }


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

"""What a client over its quota costs others: ``python -m tests.benchmarks.quotas``.

Clients at another address ask all the time, while a client asks for as much as its quota has, for ten times as much,
and for nothing, in short turns that follow each other. Asked for: the p99 of the others is less than 5 % longer beside
ten times the quota than beside the quota itself, and the p99 of the PING of the client itself is below 20 ms. A p99 is
of all turns of a kind; how far the figure is to be trusted is shown by resampling turns, and by the same figure of
turns of one kind against each other. Each client is a process of its own; how late the machine wakes one up is told
beside it, since no server can be blamed for it.
"""

from __future__ import annotations

import argparse
import json
import random
import select
import subprocess
import sys
import tempfile
import time
from bisect import bisect_left
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import Any, Final

from tests.benchmarks.measure import percentile
from tests.benchmarks.processes import machine
from tests.benchmarks.wire_client import (
    ERROR,
    GET_TOPICS_RESPONSE,
    PONG,
    FrameClient,
    command_type,
    get_topics_frame,
    ping_frame,
)
from tests.support.catalogue_topics import create_topics
from tests.support.narrowed import present
from tests.support.served import Served

__all__ = ["measure_quotas"]

#: Requests per second that the quota has.
QUOTA: Final = 100
#: How many of the others there are, and what each asks per second.
OTHERS, OTHERS_RATE = 4, 100
LIMITED_ADDRESS, OTHER_ADDRESS = "127.0.0.1", "127.0.0.2"
#: Requests per second of the client with the quota, by kind of turn.
RATES: Final = {"nobody": 0, "at its quota": QUOTA, "ten times its quota": 10 * QUOTA}
#: Turns in their order, again and again: what drifts is the same for both kinds that are compared.
_CYCLE: Final = (
    "at its quota",
    "ten times its quota",
    "ten times its quota",
    "at its quota",
    "nobody",
)
#: Seconds of a turn that do not count: what waited for the quota before has been answered then.
_SETTLES: Final = 1.2
_RESAMPLES: Final = 400
#: What is asked for: of the p99 of the others, and milliseconds of that of PONG.
MOST_RATIO: Final = 1.05
MOST_PING: Final = 20.0
_QUESTION: Final = get_topics_frame(1, "public/default", "public/default/t1.*")
#: Requests between two PINGs of the client with the quota.
_PING_EVERY: Final = 20


def _answers(client: FrameClient, timeout: float) -> list[int]:
    """The types of the commands that come within ``timeout`` seconds, if any."""
    ready, _, _ = select.select([client.socket], [], [], max(timeout, 0))
    return [command_type(memoryview(frame)) for frame in client.frames()] if ready else []


def _ask(host: str, port: int) -> dict[str, Any]:
    """Ask as the others do, until the input ends; when each question was sent, and the seconds of its answer."""
    connections = [FrameClient((host, port), OTHER_ADDRESS) for _ in range(OTHERS)]
    sent, taken, late = [], [], []
    due = time.perf_counter()
    print("ready", flush=True)
    while _told() is None:
        for connection in connections:
            due += 1 / (OTHERS * OTHERS_RATE)
            pause = due - time.perf_counter()
            if pause > 0:
                time.sleep(pause)
                late.append(time.perf_counter() - due)
            began = time.perf_counter()
            connection.socket.sendall(_QUESTION)
            while not (answers := _answers(connection, 1.0)):
                pass
            assert answers == [GET_TOPICS_RESPONSE]
            sent.append(began)
            taken.append(time.perf_counter() - began)
    return {"sent": sent, "taken": taken, "late": late}


def _exceed(host: str, port: int) -> dict[str, Any]:
    """Ask as many times a second as the last line of the input says, with PINGs between, until the input is empty."""
    connection = FrameClient((host, port), LIMITED_ADDRESS)
    counts = {GET_TOPICS_RESPONSE: 0, ERROR: 0}
    sent = dict.fromkeys(RATES.values(), 0)
    pinged: list[float] = []
    pings: list[float] = []
    rate, due = 0, 0.0
    print("ready", flush=True)
    while True:
        if told := _told():
            rate, due = int(told), time.perf_counter()
        elif told is not None:
            break
        if rate and time.perf_counter() >= due:
            connection.socket.sendall(_QUESTION)
            due += 1 / rate
            sent[rate] += 1
            if sent[rate] % _PING_EVERY == 0 and len(pinged) == len(pings):
                pinged.append(time.perf_counter())
                connection.socket.sendall(ping_frame())
        for kind in _answers(connection, min(due - time.perf_counter(), 0.01) if rate else 0.01):
            if kind == PONG:
                pings.append(time.perf_counter() - pinged[-1])
            else:
                counts[kind] += 1
    return {
        "sent": sum(sent.values()),
        "served": counts[GET_TOPICS_RESPONSE],
        "refused": counts[ERROR],
        "pinged": pinged[: len(pings)],
        "pings": pings,
    }


def _told() -> str | None:
    """The next line of the input, if it is there; an empty one is the end."""
    return sys.stdin.readline().strip() if select.select([sys.stdin], [], [], 0)[0] else None


class _Player:
    """A client in a process of its own."""

    def __init__(self, part: str, address: tuple[str, int]) -> None:
        command = [sys.executable, "-m", "tests.benchmarks.quotas", "--play", part, *map(str, address)]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
        )
        assert present(self._process.stdout).readline() == "ready\n"

    def tell(self, line: str) -> None:
        present(self._process.stdin).write(f"{line}\n")

    def end(self) -> dict[str, Any]:
        """What it measured."""
        found: dict[str, Any] = json.loads(self._process.communicate("\n", timeout=60)[0])
        return found


def measure_quotas(cycles: int, seconds: float) -> dict[str, Any]:
    """Milliseconds of the others' p99 by kind of turn, of PONGs, and what became of the requests of the client with
    the quota. ``seconds`` of each turn count.
    """
    turns: dict[str, list[tuple[float, float]]] = {kind: [] for kind in RATES}
    with tempfile.TemporaryDirectory(prefix="broker-core-bench-") as folder:
        path = Path(folder) / "topics.sqlite"
        create_topics(path, *(f"persistent://public/default/t{number}" for number in range(200)))
        quota = {
            "name": "limited",
            "addresses": [LIMITED_ADDRESS],
            "per": ["address"],
            "requests": QUOTA,
            "burst": "1s",
        }
        with Served(Path(folder), {"catalog": {"path": str(path)}, "quotas": [quota]}) as served:
            others, limited = _Player("ask", served.address), _Player("exceed", served.address)
            for kind in _CYCLE * cycles:
                limited.tell(str(RATES[kind]))
                time.sleep(_SETTLES)
                began = time.perf_counter()
                time.sleep(seconds)
                turns[kind].append((began, time.perf_counter()))
            asked, exceeded = others.end(), limited.end()

    def within(kind: str, times: Sequence[float], values: Sequence[float]) -> list[list[float]]:
        """The values of each turn of a kind."""
        return [
            sorted(values[bisect_left(times, began) : bisect_left(times, ended)])
            for began, ended in turns[kind]
        ]

    taken = {kind: within(kind, asked["sent"], asked["taken"]) for kind in RATES}
    ten, one = taken["ten times its quota"], taken["at its quota"]
    pings = list(chain(*within("ten times its quota", exceeded.pop("pinged"), exceeded.pop("pings"))))
    return exceeded | {
        "answers": {kind: sum(map(len, each)) for kind, each in taken.items()},
        "p50_ms": {
            kind: round(1000 * percentile(list(chain(*each)), 0.5), 3) for kind, each in taken.items()
        },
        "p99_ms": {kind: round(1000 * _p99(each), 3) for kind, each in taken.items()},
        "ratio": round(_p99(ten) / _p99(one), 3),
        "ratio_resampled": _resampled(ten, one),
        "ratio_of_turns_at_its_quota_to_others_of_these": _resampled(one[::2], one[1::2]),
        "pings": len(pings),
        "ping_p50_ms": round(1000 * percentile(pings, 0.5), 3),
        "ping_p99_ms": round(1000 * percentile(pings, 0.99), 3),
        "ping_most_ms": round(1000 * max(pings), 3),
        "late_p99_ms": round(1000 * percentile(asked["late"], 0.99), 3),
    }


def _p99(turns: Sequence[Sequence[float]]) -> float:
    return percentile(list(chain(*turns)), 0.99)


def _resampled(above: Sequence[list[float]], below: Sequence[list[float]]) -> list[float]:
    """The 5th, 50th and 95th percentile of the ratio of two p99, of turns drawn with replacement."""
    chance = random.Random(1)
    ratios = sorted(
        _p99(chance.choices(above, k=len(above))) / _p99(chance.choices(below, k=len(below)))
        for _ in range(_RESAMPLES)
    )
    return [round(percentile(ratios, part), 3) for part in (0.05, 0.5, 0.95)]


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and report."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cycles", type=int, default=10, help="of five turns")
    parser.add_argument("--seconds", type=float, default=2.0, help="of each turn, but for its begin")
    parser.add_argument("--play", nargs=3, help=argparse.SUPPRESS, metavar=("PART", "HOST", "PORT"))
    options = parser.parse_args(arguments)
    if options.play:
        part, host, port = options.play
        played = _ask if part == "ask" else _exceed
        print(json.dumps(played(host, int(port))))
        return
    found = measure_quotas(options.cycles, options.seconds)
    print(machine())
    print(json.dumps(found, indent=2))
    low, _, high = found["ratio_resampled"]
    print(
        f"p99 of others beside ten times the quota: {found['ratio']:.3f} of that beside the quota"
        f" ({low:.3f} to {high:.3f} by resampled turns; asked: < {MOST_RATIO}): {_verdict(found['ratio'] < MOST_RATIO)}"
    )
    ping = found["ping_p99_ms"]
    print(f"p99 of PONG: {ping:.2f} ms (asked: < {MOST_PING:.0f} ms): {_verdict(ping < MOST_PING)}")


def _verdict(passed: bool) -> str:
    return "passed" if passed else "missed"


if __name__ == "__main__":
    main()

"""Listings from PostgreSQL through the whole protocol: ``python -m tests.benchmarks.postgres``, a part of `make bench`.

A database for each size, a broker-core in front of each; at the largest of up to a million topics the goals, 64 clients
and pgbench. Each option has an environment variable, for `make bench`: BENCH_POSTGRES_SIZES=10000,100000,1000000
BENCH_SECONDS=1 BENCH_PEER=1 BENCH_POSTGRES_OUTPUT=bench-postgres.json BENCH_POSTGRES_PLOT=growth.svg.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.benchmarks.measure import asked_at_once, latency
from tests.benchmarks.names import Questions, local_names, namespace_of
from tests.benchmarks.postgres.asked import asked, check_questions
from tests.benchmarks.postgres.clients import pgbench
from tests.benchmarks.postgres.database import (
    SETTINGS,
    Filled,
    fill,
    fill_quickly,
    load_names,
    running_server,
)
from tests.benchmarks.postgres.devices import Devices
from tests.benchmarks.postgres.rounds import Subject, measure_rounds
from tests.benchmarks.postgres.tables import draw, print_tables
from tests.benchmarks.processes import machine, resident, resident_peak
from tests.benchmarks.progress import say
from tests.benchmarks.real_broker import running_broker
from tests.benchmarks.subject import capacity
from tests.benchmarks.wire_client import RawClient, get_topics_frame, read_answer
from tests.interop.pulsar_peer import PeerUnavailable
from tests.support.postgres_server import PostgresServer
from tests.support.served import Served

_CLIENTS = 64
#: Growth is shown beyond it; the goals are those of a million.
_GOALS_UP_TO = 1_000_000


def main() -> None:
    """Measure and report."""
    options = _options()
    results: dict[str, Any] = {
        "machine": machine(),
        "settings": dict(SETTINGS),
        "load_average": [os.getloadavg()],
        "sizes": {},
    }
    with contextlib.ExitStack() as stack:
        work = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="broker-core-bench-")))
        server = stack.enter_context(running_server())
        subjects: list[Subject] = []
        filled: list[Filled] = []
        for size in options.sizes:
            devices = Devices(size, options.line)
            if size >= options.quick_from:
                say(f"{size:,} topics: rows, then indexes")
                filled.append(fill_quickly(server, devices))
            else:
                say(f"{size:,} topics: load, load again, COPY")
                filled.append(fill(server, devices, work))
            served = stack.enter_context(filled[-1].served(work / str(size)))
            results["sizes"][str(size)] = {"load": filled[-1].seconds}
            say(f"{size:,} topics: compare answers with brute force")
            turns = (0,) if size > _GOALS_UP_TO else (0, 1, 17)
            everything = check_questions(served.address, devices, turns)
            subjects.append(Subject(devices, served, asked(devices, everything)))
        say("one connection, all sizes in turns")
        for subject, figures in zip(
            subjects, measure_rounds(subjects, options.seconds, options.rounds), strict=True
        ):
            results["sizes"][str(subject.devices.size)]["questions"] = figures
        main_size = max(size for size in options.sizes if size <= max(_GOALS_UP_TO, options.sizes[0]))
        at = options.sizes.index(main_size)
        results["goals_at"] = main_size
        results["memory"] = _memory(subjects[at])
        say(f"{main_size:,} topics: {_CLIENTS} clients, and pgbench")
        results["clients"] = _many(filled[at], subjects[at].served, options)
        if options.peer:
            results["peer"] = _peer(server, work, options.peer_size)
    results["load_average"].append(os.getloadavg())
    options.output.write_text(json.dumps(results, indent=1) + "\n")
    print_tables(results)
    if options.plot is not None:
        draw(results, options.plot)
        print(options.plot)
    print(f"\n{options.output}")


def _memory(subject: Subject) -> dict[str, int]:
    """What is resident after all questions, and at most while all topics are listed."""
    pid = subject.served.pid
    return {"resident": resident(pid), "peak": resident_peak(pid)}


def _many(filled: Filled, served: Served, options: argparse.Namespace) -> dict[str, Any]:
    """Alternately, so that whatever else the machine does hits both; each time with other questions."""
    question = asked(filled.devices)[1]
    ours, theirs = [], []
    for _ in range(options.rounds):
        ours.append(
            asked_at_once(
                served.address,
                question.frame,
                clients=_CLIENTS,
                budget=options.many_seconds,
                at_least=_CLIENTS,
            )
        )
        theirs.append(pgbench(filled, clients=_CLIENTS, budget=options.many_seconds))
    best = [max(each, key=lambda rate: rate.per_second) for each in (ours, theirs)]
    names = ("broker-core", "pgbench")
    return {
        "clients": _CLIENTS,
        "question": question.name,
        **{
            name: {"per_second": rate.per_second, "p50": rate.p50, "p99": rate.p99}
            for name, rate in zip(names, best, strict=True)
        },
        "ratios": [a.per_second / b.per_second for a, b in zip(ours, theirs, strict=True)],
    }


def _peer(server: PostgresServer, work: Path, size: int) -> dict[str, Any]:
    """A thousand of a million by prefix, of broker-core with PostgreSQL and of a stock broker, in turns."""
    say("the real broker: populate what is missing, start")
    try:
        with (
            running_broker([size]) as broker,
            load_names(server, namespace_of(size), local_names(size), work) as served,
        ):
            addresses = {"broker-core": served.address, "broker": ("127.0.0.1", broker.binary_port)}
            about = Questions(size)

            def frame(turn: int) -> bytes:
                prefix = f"device-{turn * 7 % (size // 1000):0{7 - 3}d}"
                return get_topics_frame(turn, about.namespace, f"persistent://{about.namespace}/{prefix}.*")

            @contextlib.contextmanager
            def client(name: str) -> Iterator[RawClient]:
                # One for each turn: meanwhile the other one's pings would go unanswered.
                with contextlib.closing(RawClient(addresses[name], capacity(size))) as opened:
                    yield opened

            answers = {}
            for name in addresses:
                with client(name) as asking:
                    answers[name] = [read_answer(asking.ask(frame(turn))) for turn in (0, 1)]
            if any(answer.topics != 1000 for each in answers.values() for answer in each) or [
                answer.topics_hash for answer in answers["broker"]
            ] != [answer.topics_hash for answer in answers["broker-core"]]:
                raise RuntimeError(f"the answers differ: {answers}")
            seen: dict[str, Any] = {name: [] for name in addresses}
            for each in range(3):
                turns = range(2 + each * 300, 2 + (each + 1) * 300)
                for name in addresses:
                    with client(name) as asking:
                        seen[name].append(latency(asking, frame, turns=turns, budget=2.0, at_least=3).p50)
    except PeerUnavailable as error:
        sys.exit(f"BENCH_PEER=1, but: {error}")
    return {
        **{name: {"p50": min(each), "all": each} for name, each in seen.items()},
        "ratio": min(seen["broker"]) / min(seen["broker-core"]),
        "topics": size,
    }


def _options() -> argparse.Namespace:
    environment = os.environ.get

    def sizes(text: str) -> list[int]:
        return sorted(int(part.replace("_", "")) for part in text.split(","))

    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.postgres", description=__doc__)
    parser.add_argument(
        "--sizes",
        type=sizes,
        default=sizes(environment("BENCH_POSTGRES_SIZES", "10000,100000,1000000")),
        help="5000000 may be among them: it takes minutes and 4 GB of disk",
    )
    parser.add_argument(
        "--quick-from",
        type=int,
        default=_GOALS_UP_TO + 1,
        help="sizes from this one on have their indexes made after the rows, and no times of loads",
    )
    parser.add_argument("--line", type=int, default=1_000, help="matches of a selective question")
    parser.add_argument("--rounds", type=int, default=int(environment("BENCH_RUNS", "3")))
    seconds = float(environment("BENCH_SECONDS", "1"))
    parser.add_argument("--seconds", type=float, default=seconds, help="for each question, in each round")
    parser.add_argument(
        "--many-seconds", type=float, default=5 * seconds, help="for the clients, in each round"
    )
    parser.add_argument(
        "--peer",
        action=argparse.BooleanOptionalAction,
        default=environment("BENCH_PEER", "0") not in {"", "0", "no", "false"},
        help="the ratio to a real broker",
    )
    parser.add_argument("--peer-size", type=int, default=1_000_000)
    plot = environment("BENCH_POSTGRES_PLOT")
    parser.add_argument(
        "--plot", type=Path, default=Path(plot) if plot else None, help="an SVG of the growth"
    )
    parser.add_argument(
        "--output", type=Path, default=Path(environment("BENCH_POSTGRES_OUTPUT", "bench-postgres.json"))
    )
    return parser.parse_args()


if __name__ == "__main__":
    main()

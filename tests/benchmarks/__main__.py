"""`make bench`: ask broker-core, and with BENCH_PEER=1 a real Pulsar broker, the same questions with the same client.

Each option has an environment variable, for `make bench`: BENCH_SIZES=10000,100000 BENCH_RUNS=3 BENCH_PEER=1
BENCH_SECONDS=1 BENCH_CROWD=1 BENCH_HTTP=1 BENCH_RETURNING=1000 BENCH_OUTPUT=bench-results.json.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tests.benchmarks.crowd import crowd
from tests.benchmarks.floor import floor
from tests.benchmarks.http_listings import http_listings
from tests.benchmarks.names import Questions, namespace_of
from tests.benchmarks.ours import Catalogue, make_catalogue
from tests.benchmarks.processes import machine
from tests.benchmarks.progress import say
from tests.benchmarks.python_client import client_figures
from tests.benchmarks.real_broker import running_broker
from tests.benchmarks.reconnects import Reconnects, run_reconnects
from tests.benchmarks.report import print_report, summarize
from tests.benchmarks.subject import Effort, Figures, capacity, check_answers, run_questions
from tests.benchmarks.wire_client import RawClient, get_topics_frame
from tests.interop.pulsar_peer import PeerUnavailable, PulsarBroker


def main() -> None:
    """Measure and report."""
    options = _options()
    results: dict[str, Any] = {"machine": machine(), "runs": options.runs, "sizes": {}}
    recorded = json.loads(options.peer_from.read_text()) if options.peer_from else None
    with contextlib.ExitStack() as stack:
        work = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="broker-core-bench-")))
        broker = None
        if options.peer:
            say("the real broker: populate what is missing, start")
            try:
                broker = stack.enter_context(running_broker(options.sizes))
            except PeerUnavailable as error:
                sys.exit(f"BENCH_PEER=1, but: {error}")
        for size in options.sizes:
            subjects: dict[str, Any] = {}
            if not options.peer_only:
                say(f"{size:,} topics: import")
                catalogue = make_catalogue(work / str(size), size)
                subjects["import_seconds"] = catalogue.import_seconds
                subjects["broker-core"] = summarize(
                    [_run_ours(catalogue, options.seconds, run) for run in range(options.runs)]
                )
                if options.http:
                    results.setdefault("http", {})[str(size)] = _http(catalogue, options.runs)
                if options.crowd and size == max(options.sizes):
                    results["crowd"] = _crowd(catalogue)
                    results["client"] = _client(catalogue)
                    results["reconnects"] = _reconnects(work, options.returning)
            if broker is not None:
                subjects["pulsar"] = summarize(_run_broker(broker, size, options.seconds, options.runs))
            elif recorded is not None and str(size) in recorded["sizes"]:
                subjects["pulsar"] = recorded["sizes"][str(size)]["pulsar"]
            results["sizes"][str(size)] = subjects
            results.setdefault("floor", {})[str(size)] = _floor(subjects)
    options.output.write_text(json.dumps(results, indent=1) + "\n")
    print_report(results)
    print(f"\n{options.output}")


def _run_ours(catalogue: Catalogue, seconds: float, run: int) -> dict[str, Any]:
    size = catalogue.size
    say(f"{size:,} topics: broker-core, run {run + 1}")
    about = Questions(size)
    prefix = get_topics_frame(1, about.namespace, about.prefix(0))
    nothing = get_topics_frame(2, about.namespace)
    with catalogue.server() as served:
        client = RawClient(served.address, capacity(size))
        cold = {
            "process start to `ready`": served.started_in,
            "first request after the start (prefix)": _seconds(client, prefix),
        }
        expected = check_answers(served.address, size)
        figures: Figures = run_questions(
            served.address, served.pid, size, expected, Effort(seconds=seconds, at_least=5, warm=5)
        )
        catalogue.create_topic("one-more")
        cold["first request after a topic was created (prefix)"] = _seconds(client, prefix)
        catalogue.delete_topic("one-more")
        cold["first request after a topic was deleted (none)"] = _seconds(client, nothing)
        figures.cold = cold
        client.close()
    return asdict(figures)


def _run_broker(broker: PulsarBroker, size: int, seconds: float, runs: int) -> list[dict[str, Any]]:
    address = ("127.0.0.1", broker.binary_port)
    # It takes seconds for one answer about a million topics, and a JVM wants many before it is at its best: the rounds
    # with fewer topics, which come first, have warmed it up.
    rounds = max(1, 1_000_000 // size)
    effort = Effort(
        seconds=seconds,
        at_least=min(20, 2 + rounds),
        warm=rounds,
        most=200,
        throughput_answers=max(16, rounds),
    )
    expected = check_answers(address, size)
    measured = []
    for run in range(runs):
        say(f"{size:,} topics: the real broker, run {run + 1}")
        measured.append(asdict(run_questions(address, broker.pid, size, expected, effort)))
    return measured


def _crowd(catalogue: Catalogue) -> dict[str, Any]:
    say(f"{catalogue.size:,} topics: 200 clients at once")
    with catalogue.server() as served:
        client = RawClient(served.address, capacity(catalogue.size))
        client.ask(
            get_topics_frame(1, namespace_of(catalogue.size))
        )  # the snapshot is there before they come
        client.close()
        result = crowd(served.address, served.pid, namespace_of(catalogue.size))
    return {"topics": catalogue.size, **result}


def _client(catalogue: Catalogue) -> dict[str, Any]:
    say(f"{catalogue.size:,} topics: the Python client")
    folder = catalogue.folder
    return client_figures(folder / "catalog.sqlite", folder / "client", catalogue.size)


def _http(catalogue: Catalogue, runs: int) -> dict[str, Any]:
    say(f"{catalogue.size:,} topics: over HTTP")
    with catalogue.server(http=True) as served:
        return http_listings(served, catalogue.path, catalogue.size, times=10 * runs)


def _reconnects(work: Path, returning: int) -> dict[str, Any]:
    wanted = Reconnects(plain=returning * 5, tls=returning)
    say(f"{wanted.plain + wanted.tls:,} clients come back at once")
    return run_reconnects(wanted, work / "reconnects")


def _floor(subjects: dict[str, Any]) -> dict[str, float]:
    asked = (subjects.get("broker-core") or subjects["pulsar"])["questions"]
    return {name: floor(asked[name]["repeating"]["size"]) for name in ("prefix", ".*")}


def _seconds(client: RawClient, frame: bytes) -> float:
    begun = time.perf_counter()
    client.ask(frame)
    return time.perf_counter() - begun


def _options(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    def switch(name: str, default: str) -> bool:
        return os.environ.get(name, default) not in {"", "0", "no", "false"}

    def sizes(text: str) -> list[int]:
        return [int(part.replace("_", "")) for part in text.split(",")]

    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=__doc__)
    default_sizes = os.environ.get("BENCH_SIZES", "10000,100000,1000000")
    parser.add_argument(
        "--sizes", type=sizes, default=sizes(default_sizes), help="powers of ten from 10,000 on"
    )
    parser.add_argument("--runs", type=int, default=int(os.environ.get("BENCH_RUNS", "3")))
    parser.add_argument(
        "--peer",
        action=argparse.BooleanOptionalAction,
        default=switch("BENCH_PEER", "0"),
        help="the real broker too",
    )
    parser.add_argument("--peer-only", action="store_true", help="only the real broker")
    parser.add_argument(
        "--peer-from", type=Path, help="the real broker's figures of an earlier run's JSON, same machine"
    )
    parser.add_argument(
        "--crowd",
        action=argparse.BooleanOptionalAction,
        default=switch("BENCH_CROWD", "1"),
        help="200 clients at once",
    )
    parser.add_argument(
        "--http",
        action=argparse.BooleanOptionalAction,
        default=switch("BENCH_HTTP", "1"),
        help="listings over HTTP",
    )
    parser.add_argument(
        "--returning",
        type=int,
        default=int(os.environ.get("BENCH_RETURNING", "1000")),
        help="clients that come back over TLS at once, and five times as many without",
    )
    seconds = float(os.environ.get("BENCH_SECONDS", "1"))
    parser.add_argument("--seconds", type=float, default=seconds, help="for each question, in each run")
    parser.add_argument(
        "--output", type=Path, default=Path(os.environ.get("BENCH_OUTPUT", "bench-results.json"))
    )
    options = parser.parse_args(arguments)
    options.peer = options.peer or options.peer_only
    return options


if __name__ == "__main__":
    main()

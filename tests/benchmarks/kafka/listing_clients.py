"""Kafka's clients before a cluster and before its gateway: ``python -m tests.benchmarks.kafka.listing_clients A B``.

``A`` and ``B`` are addresses of a node and of the gateway. Each client lists all topics, in turns; medians in
milliseconds of what the client itself takes, and of the whole program for ``kafka-topics.sh``.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from tests.benchmarks.processes import machine
from tests.interop.foreign import node_modules, python_of
from tests.interop.kafka_peer import kafka_jars
from tests.support.quick_java import QUICK_JAVA

__all__ = ["measure"]

_CLIENTS: Final = Path(__file__).resolve().parents[2] / "interop" / "kafka_clients"
_KAFKA_PYTHON: Final = """
import sys, time
from kafka import KafkaAdminClient
admin = KafkaAdminClient(bootstrap_servers=sys.argv[1])
for _ in range(7):
    begun = time.perf_counter()
    count = len(admin.list_topics())
    print(time.perf_counter() - begun, count)
"""
_CONFLUENT: Final = """
import sys, time
from confluent_kafka.admin import AdminClient
admin = AdminClient({"bootstrap.servers": sys.argv[1]})
for _ in range(7):
    begun = time.perf_counter()
    count = len(admin.list_topics(timeout=30).topics)
    print(time.perf_counter() - begun, count)
"""
_KAFKAJS: Final = """
import kafkajs from "kafkajs";
const admin = new kafkajs.Kafka({ brokers: [process.argv[2]], logLevel: 0 }).admin();
await admin.connect();
for (let turn = 0; turn < 7; turn++) {
  const begun = performance.now();
  const count = (await admin.listTopics()).length;
  console.log((performance.now() - begun) / 1000, count);
}
await admin.disconnect();
"""


def measure(addresses: Sequence[str], turns: int = 3) -> dict[str, list[tuple[float, int]]]:
    """By client the median of seconds, and the number of topics, at each of the addresses."""
    modules = node_modules(_CLIENTS / "node")
    program = modules / "list_topics.mjs"
    program.write_text(_KAFKAJS)
    confluent = str(python_of(_CLIENTS / "python" / "clients.txt"))
    clients: dict[str, Callable[[str], list[tuple[float, int]]]] = {
        "kafkajs": lambda address: _rows(["node", str(program), address]),
        "confluent-kafka": lambda address: _rows([confluent, "-c", _CONFLUENT, address]),
        "kafka-python": lambda address: _rows([sys.executable, "-c", _KAFKA_PYTHON, address]),
        "kafka-topics.sh --list": _tool,
    }
    found: dict[str, list[tuple[float, int]]] = {}
    for name, listed in clients.items():
        rows: list[list[tuple[float, int]]] = [[] for _ in addresses]
        for _ in range(turns):
            for of_address, address in zip(rows, addresses, strict=True):
                of_address.extend(listed(address))
        found[name] = [(statistics.median(row[0] for row in each), each[-1][1]) for each in rows]
    return found


def _rows(command: list[str]) -> list[tuple[float, int]]:
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300)
    rows = [json.loads(f"[{line.replace(' ', ',')}]") for line in done.stdout.splitlines()]
    return [(seconds, count) for seconds, count in rows[2:]]  # the first ones connect


def _tool(address: str) -> list[tuple[float, int]]:
    tool = [
        "java",
        *QUICK_JAVA,
        "-Xmx256m",
        "-cp",
        f"{kafka_jars()}/*",
        "org.apache.kafka.tools.TopicCommand",
    ]
    tool += ["--bootstrap-server", address, "--list"]
    begun = time.perf_counter()
    done = subprocess.run(tool, capture_output=True, text=True, check=True, timeout=300)
    return [(time.perf_counter() - begun, len(done.stdout.splitlines()))]


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and report."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.benchmarks.kafka.listing_clients", description=__doc__
    )
    parser.add_argument("address", nargs=2)
    options = parser.parse_args(arguments)
    print(machine())
    print(f"{'':24}{'node':>10}{'gateway':>10}{'topics':>9}")
    for name, ((node, count), (gateway, same)) in measure(options.address).items():
        topics = f"{same:,}" if count == same else f"{count:,}/{same:,}"
        print(f"{name:24}{node * 1000:10.1f}{gateway * 1000:10.1f}{topics:>9}")


if __name__ == "__main__":
    main()

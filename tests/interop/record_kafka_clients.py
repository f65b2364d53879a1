"""Record what Kafka's clients make of the answers of a real broker.

``python -m tests.interop.record_kafka_clients`` starts one and writes ``tests/vectors/kafka-4.3.1-clients.json``: of
each client, the result of each of its cases.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

from tests.interop.kafka_clients.python.case_lines import Server
from tests.interop.kafka_clients.python.raw_requests import RawRequests
from tests.interop.kafka_peer import KafkaBroker
from tests.interop.kafka_programs import CLIENTS, cases

__all__ = ["PLAIN", "prepare", "recorded"]

#: As a broker is by itself: without an authorizer, and with its own size of pages.
PLAIN: Final = {
    "authorizer.class.name": "",
    "max.request.partition.size.limit": "2000",
    "num.partitions": "1",
}
AUTHORIZER: Final = {"authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer"}
_OUT: Final = Path(__file__).resolve().parents[1] / "vectors" / "kafka-4.3.1-clients.json"


def prepare(server: Server) -> None:
    """Delete all topics, and make sure that an internal topic exists."""
    ask = RawRequests(server)
    ask.delete(*({"name": name} for name in ask.ids() if name != "__consumer_offsets"))
    configs = [{"name": "cleanup.policy", "value": "compact"}]
    ask.create({"name": "__consumer_offsets", "configs": configs})
    ask.close()


def recorded() -> dict[str, dict[str, Any]]:
    """The vectors."""
    found: dict[str, dict[str, Any]] = json.loads(_OUT.read_text(encoding="utf-8"))["cases"]
    return found


def main(clients: list[str]) -> None:
    """Record these clients, or all."""
    found = recorded() if _OUT.exists() else {}
    wanted = clients or list(CLIENTS)
    # kafka-acls.sh needs an authorizer.
    for properties, some in (
        (PLAIN, [name for name in wanted if name != "tools"]),
        (PLAIN | AUTHORIZER, [name for name in wanted if name == "tools"]),
    ):
        if some:
            found |= _recorded_now(properties, some)
    vectors = {
        "broker": "Apache Kafka 4.3.1",
        "cases": {name: found[name] for name in CLIENTS if name in found},
    }
    _OUT.write_text(json.dumps(vectors, indent=0, ensure_ascii=False) + "\n", encoding="utf-8")


def _recorded_now(properties: dict[str, str], clients: list[str]) -> dict[str, dict[str, Any]]:
    found = {}
    with tempfile.TemporaryDirectory() as folder, KafkaBroker(Path(folder), properties) as broker:
        server = Server(broker.address, settle=0.3)
        for client in clients:
            prepare(server)
            done = cases(client, server, Path(folder) / client)
            found[client] = {case: row["result"] for case, row in done.items()}
            print(f"{client}: {len(done)} cases")
    return found


if __name__ == "__main__":
    main(sys.argv[1:])

"""docs/reference/clients.md has the versions that tests/interop runs."""

from __future__ import annotations

import json
import re

from tests.docs.pages import ROOT, tables

INTEROP = ROOT / "tests" / "interop"


def one(pattern: str, file: str) -> str:
    (found,) = re.findall(pattern, (ROOT / file).read_text(encoding="utf-8"), re.MULTILINE)
    return str(found)


def test_the_versions_are_those_of_the_set_up() -> None:
    shown = {row[0]: row[1] for table in tables("reference/clients.md") for row in table.rows}
    pulsar = one(r"<pulsar.version>(.*)</", "tests/interop/pulsar_peer/pom.xml")
    kafka = one(r"<kafka.version>(.*)</", "tests/interop/kafka_peer/pom.xml")
    node = json.loads((INTEROP / "kafka_clients/node/package.json").read_text(encoding="utf-8"))[
        "dependencies"
    ]
    python = "tests/interop/kafka_clients/python"
    kafka_python = (
        one(r"^kafka-python==(\S+)", "requirements/dev.txt"),
        one(r"^kafka-python==(\S+)", f"{python}/kafka_python_2.txt"),
    )
    real = {
        "Java, `pulsar-client`": pulsar,
        "Java, `pulsar-admin`": one(
            r"<pulsar.version>(.*)</", "tests/interop/pulsar_peer/pulsar_admin_pom.xml"
        ),
        "`pulsar tokens`": pulsar,
        "Pulsar's broker": pulsar,
        "Go, `pulsar-client-go`": one(r"pulsar-client-go v(\S+)$", "tests/interop/go/go.mod"),
        "Python, `pulsar-client`": one(r"^pulsar-client==(\S+)", "requirements/dev.txt"),
        "Kafka's Java clients and command line tools": kafka,
        "Kafka's broker": kafka,
        "kafka-python": ", ".join(kafka_python),
        "confluent-kafka (librdkafka)": one(r"^confluent-kafka==(\S+)", f"{python}/clients.txt"),
        "aiokafka": one(r"^aiokafka==(\S+)", f"{python}/clients.txt"),
        "kafkajs": node["kafkajs"],
        "@platformatic/kafka": node["@platformatic/kafka"],
    }
    assert {client: shown[client] for client in real} == real

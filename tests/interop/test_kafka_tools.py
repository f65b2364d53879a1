"""kafka-topics.sh, kafka-configs.sh, kafka-acls.sh and kcat: they say at this server what they say at Kafka 4.3.1."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from tests.interop.foreign import kcat, librdkafka
from tests.interop.kafka_clients.python.case_lines import Server
from tests.interop.kafka_programs import cases, differences
from tests.interop.kafka_stage import ROADS, KafkaServed, kafka_server
from tests.interop.maven import PeerUnavailable
from tests.interop.record_kafka_clients import recorded

pytestmark = pytest.mark.interop

_SCRAM: Final = "SCRAM-SHA-256"
#: kafka-acls.sh needs an authorizer.
_SUPER_USERS: Final = {"super_users": ["User:ANONYMOUS", "User:alice"]}


@pytest.fixture(scope="module", params=["plain", "sasl-scram-256", "sasl-plain-tls"])
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaServed]:
    folder: Path = tmp_path_factory.mktemp("tools")
    with kafka_server(folder, ROADS[request.param], kafka=_SUPER_USERS) as served:
        yield served


def test_kcat_lists_and_describes(server: KafkaServed) -> None:
    try:
        program = kcat()
    except PeerUnavailable as error:
        pytest.skip(str(error))
    if server.clients.mechanism == _SCRAM and librdkafka(program) < (2, 6, 1):
        # It repeats its nonce in SCRAM's last message, which RFC 5802 forbids: Kafka 4 refuses it too.
        done = _kcat(program, server.clients, "-L", "-m", "2")
        assert "invalid credentials" in done.stderr
        return
    listed = _json(_kcat(program, server.clients, "-L", "-J"))
    assert [broker["id"] for broker in listed["brokers"]] == [1]
    assert listed["controllerid"] == 1
    topics = {each["topic"]: len(each["partitions"]) for each in listed["topics"]}
    assert topics == {"__consumer_offsets": 1}
    one = _json(_kcat(program, server.clients, "-L", "-J", "-t", "nowhere"))["topics"]
    assert [(each["topic"], each["partitions"]) for each in one] == [("nowhere", [])]
    assert re.search("(?i)unknown topic", one[0]["error"])


def _kcat(program: str, server: Server, *arguments: str) -> subprocess.CompletedProcess[str]:
    options = {"security.protocol": server.protocol.lower()}
    if server.mechanism:
        options |= {
            "sasl.mechanism": server.mechanism,
            "sasl.username": server.user or "",
            "sasl.password": server.password or "",
        }
    if server.ca:
        options["ssl.ca.location"] = server.ca
    command = [program, "-b", server.bootstrap, *(f"-X{name}={value}" for name, value in options.items())]
    return subprocess.run([*command, *arguments], capture_output=True, text=True, timeout=60, check=False)


def _json(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    assert done.returncode == 0, done.stderr
    said: dict[str, Any] = json.loads(done.stdout)
    return said


def test_commands_say_what_they_say_at_a_broker(server: KafkaServed, tmp_path: Path) -> None:
    try:
        found = cases("tools", server.clients, tmp_path)
    except PeerUnavailable as error:
        pytest.skip(str(error))
    different = differences(recorded()["tools"], found)
    assert not different, json.dumps(different, indent=1)

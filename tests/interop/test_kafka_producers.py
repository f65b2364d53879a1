"""Kafka's producers and consumers at this server, which keeps no messages: they get an error at once."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest

from broker_core.servers.kafka.apis.refused_produce_and_fetch import NO_LOG
from tests.interop.kafka_programs import CLIENTS, cases
from tests.interop.kafka_stage import KafkaServed, kafka_server
from tests.interop.maven import PeerUnavailable

pytestmark = pytest.mark.interop

#: Seconds, also on a busy machine; clients wait for longer where nobody answers.
_AT_ONCE: Final = 30.0
_POLICY: Final = r"(?i)policy.?violation"
_REFUSALS: Final = {
    "produce": _POLICY,
    "produce_idempotent": _POLICY,
    # A consumer of librdkafka may look for its group first.
    "consume": r"(?i)(topic|group).?authorization|not authorized to access topics",
    "join_a_group": r"(?i)group.?(authorization|coordinator)|not authorized to access group",
}
#: The others show a text of their own for the code.
_SHOW_OUR_TEXT: Final = {
    ("java", "produce"),
    ("kafka-python", "produce"),
    ("kafka-python", "produce_idempotent"),
    ("kafka-python-2", "produce"),
    ("confluent-kafka", "join_a_group"),
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaServed]:
    with kafka_server(tmp_path_factory.mktemp("data"), topics={"data": 1}) as served:
        yield served


@pytest.mark.parametrize("client", [name for name in CLIENTS if name not in ("raw", "tools")])
def test_is_told_at_once_that_there_is_no_log(client: str, server: KafkaServed, tmp_path: Path) -> None:
    try:
        told = cases(client, replace(server.clients, data=True), tmp_path)
    except PeerUnavailable as error:
        pytest.skip(str(error))
    assert {"produce", "join_a_group"} <= set(told)
    for case, row in told.items():
        said = json.dumps(row["result"])
        assert re.search(_REFUSALS[case], said), f"{case}: {said}"
        assert (client, case) not in _SHOW_OUR_TEXT or NO_LOG in said, f"{case}: {said}"
        assert row["seconds"] < _AT_ONCE, f"{case} took {row['seconds']} s"

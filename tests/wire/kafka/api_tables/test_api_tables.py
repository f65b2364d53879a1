from __future__ import annotations

import pytest

from broker_core.wire.kafka import APIS, LIST_TOPICS, Api
from tests.support.kafka_oracles import DIRECTIONS, Direction, schema_differences

KAFKAS = [api for api in APIS.values() if api is not LIST_TOPICS]


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("api", KAFKAS, ids=lambda api: api.name)
def test_messages_are_declared_as_kafka_declares_them(api: Api, direction: Direction) -> None:
    assert schema_differences(api, direction) == []

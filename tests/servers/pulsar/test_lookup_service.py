"""Which commands are lookups, and the parts that answer them."""

from __future__ import annotations

import pytest

from broker_core.servers.pulsar.lookup_service import LOOKUP_COMMANDS, MOST_PARTITIONS
from broker_core.wire.pulsar import commands
from broker_core.wire.pulsar.pulsar_api_pb2 import BaseCommand


def test_lookups_are_neither_listings_nor_the_work_of_a_broker() -> None:
    assert {BaseCommand.PARTITIONED_METADATA, BaseCommand.LOOKUP, BaseCommand.GET_SCHEMA} == LOOKUP_COMMANDS


@pytest.mark.parametrize("partitions", [0, MOST_PARTITIONS])
def test_an_answer_holds_all_partitions_that_clients_can_count(partitions: int) -> None:
    found = commands.decode(commands.partitioned_metadata_response(1, partitions)[8:])
    assert found.partitionMetadataResponse.partitions == partitions

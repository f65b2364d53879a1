"""Each lookup command of the table is answered by every part that answers lookups."""

from __future__ import annotations

import pytest

from broker_core.access.asker import Asker
from broker_core.servers.pulsar.catalog_lookups import CatalogLookups
from broker_core.servers.pulsar.lookup_service import LookupService
from broker_core.servers.pulsar.relayed_lookups import RelayedLookups
from broker_core.service import Find
from broker_core.settings import UpstreamSettings
from broker_core.upstream.pulsar import LookupRelay, UpstreamCluster, UpstreamOptions
from broker_core.wire.pulsar import commands
from broker_core.wire.pulsar.frames import HEADER_SIZE
from broker_core.wire.pulsar.lookup_commands import LOOKUP_COMMANDS, LookupCommand
from broker_core.wire.pulsar.messages.pulsar_api_pb2 import BaseCommand
from tests.support.memory_lister import MemoryLister
from tests.support.pipelines import made


def relay() -> LookupRelay:
    return UpstreamCluster(
        UpstreamOptions(UpstreamSettings(service_url="pulsar://127.0.0.1:1"), connection_wait=0.0)
    ).relay


@pytest.mark.parametrize("row", LOOKUP_COMMANDS.values(), ids=lambda row: row.action)
async def test_an_answer_has_the_type_and_the_request_id_of_its_question(row: LookupCommand) -> None:
    question = BaseCommand(type=row.request)
    row.request_body(question).request_id = 7
    row.request_body(question).topic = "persistent://t/n/x"
    if row.request == BaseCommand.GET_OR_CREATE_SCHEMA:
        question.getOrCreateSchema.schema = b""
    async with made(MemoryLister()) as m:
        find = Find(m.pipeline, None)
        services: list[LookupService] = [
            CatalogLookups(m.pipeline, find),
            RelayedLookups(m.pipeline, find.plugins, relay()),
        ]
        for service in services:
            answer = commands.decode((await service.answer(question, Asker()))[HEADER_SIZE:])
            assert (answer.type, row.response_body(answer).request_id) == (row.response, 7)

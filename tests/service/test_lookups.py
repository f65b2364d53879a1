"""Each lookup command is answered by every part that answers lookups, and refused to other protocols by its cause.

What is answered to them: tests/servers/http/admin/test_lookups.py.
"""

from __future__ import annotations

import pytest

from broker_core import Asker, Cause, TopicName
from broker_core.errors import ListingFailed, ServerError
from broker_core.memory.permit_budget import Keep
from broker_core.servers.pulsar import CatalogLookups, RelayedLookups
from broker_core.service import Find, LookupQuestions, LookupService
from broker_core.settings import UpstreamSettings
from broker_core.upstream.pulsar import LookupRelay, UpstreamCluster, UpstreamOptions
from broker_core.wire.pulsar import HEADER_SIZE, LOOKUP_COMMANDS, BaseCommand, FeatureFlags, commands
from broker_core.wire.pulsar.lookup_commands import LookupCommand
from tests.support.memory_lister import MemoryLister
from tests.support.pipelines import made

X = TopicName.parse("persistent://t/n/x")


class Refusing:
    """Refuses each lookup with a code, in its own answer or as an ERROR."""

    feature_flags = FeatureFlags()

    def __init__(self, code: ServerError, *, plainly: bool) -> None:
        self._code = code
        self._plainly = plainly

    async def answer(self, command: BaseCommand, _asker: Asker, _keep: Keep | None = None, /) -> bytes:
        if self._plainly:
            error = BaseCommand(type=BaseCommand.ERROR)
            error.error.request_id, error.error.error, error.error.message = 0, int(self._code), "no"
            return commands.encode(error)
        return commands.refuse(command, self._code, "no")


@pytest.mark.parametrize("plainly", [True, False])
@pytest.mark.parametrize(
    ("code", "cause", "text"),
    [
        (ServerError.TopicNotFound, Cause.NOT_FOUND, "nowhere"),
        (ServerError.AuthorizationError, Cause.DENIED, "no"),
        (ServerError.MetadataError, Cause.UPSTREAM, "no"),
    ],
)
async def test_a_refusal_has_its_cause(code: ServerError, cause: Cause, text: str, plainly: bool) -> None:
    questions = LookupQuestions(Refusing(code, plainly=plainly))
    asked = (
        questions.partitions(X, Asker(), "nowhere", may_create=False),
        questions.broker(X, Asker(), "nowhere", authoritative=False, listener=None),
        questions.schema(X, Asker(), "nowhere", 3),
    )
    for question in asked:
        with pytest.raises(ListingFailed) as caught:
            await question
        assert (caught.value.cause, caught.value.message) == (cause, text)


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

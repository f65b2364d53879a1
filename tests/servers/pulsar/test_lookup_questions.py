"""What brokers refuse to other protocols, by its cause. What they answer: tests/servers/http/admin/test_lookups.py."""

from __future__ import annotations

import pytest

from broker_core import Asker, Cause, TopicName
from broker_core.errors import ListingFailed, ServerError
from broker_core.memory.permit_budget import Keep
from broker_core.servers.pulsar import LookupQuestions
from broker_core.wire.pulsar import BaseCommand, FeatureFlags, commands

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

"""Answers of plugins as Pulsar clients see them: always an exact answer or an error."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from broker_core import ListingRequest
from broker_core.errors import ServerError, TooManyRequests
from broker_core.listing.listing import Listing
from broker_core.listing.listing_hash import topics_hash
from broker_core.names import Mode, NamespaceName
from tests.support.eventually import eventually
from tests.support.plugin_answers import (
    NAMESPACE,
    A,
    B,
    C,
    answering,
    asked,
    raising,
    success,
    topics,
)
from tests.support.plugins import PluginOf
from tests.support.pulsar_serving import serving
from tests.support.raw_client import Refused

# -- the chain ---------------------------------------------------------------------------------------------------


async def test_what_a_plugin_gets() -> None:
    got: list[tuple[Any, ...]] = []

    def broker_core_list_topics(
        properties: Any, topics_pattern: Any, mode: Any, namespace: Any, request: Any
    ) -> None:
        got.append((str(namespace), mode, topics_pattern, dict(properties), request))

    await asked(
        {"p": PluginOf(list_topics=broker_core_list_topics)},
        mode=2,
        pattern="persistent://t/n/x.*",
        properties={"k": "v"},
        topics_hash="0123abcd",
    )
    namespace, mode, pattern, properties, request = got[0]
    assert (namespace, mode, pattern, properties) == ("t/n", Mode.ALL, "persistent://t/n/x.*", {"k": "v"})
    assert request.pattern.ranges == ((b"t/n/x", b"t/n/x\xff"),)
    assert request.topics_hash == "0123abcd"
    assert request.asker.client_version == "Pulsar-Java-v4.2.4"


# -- what a success may hold -------------------------------------------------------------------------------------


class Lazy(list[str]):
    """A sequence of a plugin's own making."""


@pytest.mark.parametrize(
    "given",
    [
        [B, A, C],
        (A, B, C),
        [A, B, C, A, A],
        Lazy([C, B, A]),
        pa.array([B, A, C]),
        pa.array([A, B, C], pa.large_string()),
        pa.array([A, B, C, "x"])[:3],
        pa.array([A, B, C, B]).dictionary_encode(),
        pa.chunked_array([[C], [], [A, B]]),
        Listing.from_names(NamespaceName("t", "n"), Mode.PERSISTENT, [A, B, C]),
        Listing.from_names(NamespaceName("t", "n"), Mode.PERSISTENT, [A, B, C]).all(),
        [*[A, B, C], "persistent://t/n/__change_events", "persistent://t/n/x__transaction_pending_ack"],
    ],
    ids=str,
)
async def test_topics_in_any_form(given: Any) -> None:
    answer = await asked({"p": answering(success(given))})
    assert topics(answer) == [A, B, C]
    assert answer.topics_hash == topics_hash([A, B, C])
    assert not answer.filtered


async def test_topics_of_both_domains() -> None:
    other = "non-persistent://t/n/a"
    answer = await asked({"p": answering(success([A, other]))}, mode=2)
    assert topics(answer) == [other, A]
    with pytest.raises(Refused, match="does not belong into a listing of mode PERSISTENT"):
        await asked({"p": answering(success([A, other]))}, mode=0)


BAD_TOPICS: list[tuple[Any, str]] = [
    ([A, "persistent://t/other/b"], "is not in namespace t/n"),
    ([A, "non-persistent://t/n/b"], "does not belong into a listing of mode PERSISTENT"),
    ([A, "b"], "Invalid topic name 'b'"),
    ([A, ""], "Invalid topic name ''"),
    ([A, "persistent://t/n/"], "Invalid topic name"),
    ([A, "persistent://t/n/b/c"], "Invalid topic name"),
    ([A, "topic://t/n/b"], "topic"),
    ([A, "persistent://t/n/" + "x" * 40_000], "40000 bytes"),
    ([A, "persistent://t/n/\ud800"], "not valid Unicode"),
    ([A, None], "null"),
    ([A, 7], "topics must be strings"),
    ([A, A.encode()], "topics must be strings, but that at position 1 is of type bytes"),
    (pa.array([A, None]), "null"),
    (pa.array([1, 2]), "topics must be strings"),
    (pa.array([A.encode()], pa.binary()), "topics must be strings"),
    (
        Listing.from_names(NamespaceName("t", "x"), Mode.PERSISTENT, []),
        "returned a listing of t/x PERSISTENT",
    ),
    (Listing.from_names(NamespaceName("t", "n"), Mode.ALL, [A]), "returned a listing of t/n ALL"),
]


@pytest.mark.parametrize(("given", "message"), BAD_TOPICS, ids=[message for _, message in BAD_TOPICS])
async def test_bad_topics_are_an_error_that_names_the_plugin(given: Any, message: str) -> None:
    with pytest.raises(Refused) as raised:
        await asked({"bad-one": answering(success(given))})
    assert raised.value.code is ServerError.MetadataError
    assert raised.value.message.startswith("plugin 'bad-one' ")
    assert message in raised.value.message


# -- the rest ----------------------------------------------------------------------------------------------------


async def test_observers_hear_how_it_ended() -> None:
    heard: list[tuple[Any, ...]] = []

    async def broker_core_listing_served(request: ListingRequest, outcome: Any) -> None:
        heard.append((request.topics_pattern, outcome.outcome, outcome.lister, outcome.topics, outcome.error))

    plugins = {
        "o": PluginOf(listing_served=broker_core_listing_served),
        "p": answering(lambda request: success(["bad"] if request.properties else [A, B])),
    }
    async with serving(plugins=plugins) as s, await s.client() as client:
        await client.ask(NAMESPACE, pattern="t/n/a")
        await client.ask(NAMESPACE, topics_hash=topics_hash([A, B]))
        with pytest.raises(Refused):
            await client.ask(NAMESPACE, properties={"k": "v"})
        await eventually(lambda: len(heard) == 3)
    assert heard[0] == ("t/n/a", "served", "p", 1, None)
    assert heard[1] == (None, "unchanged", "p", 0, None)
    assert heard[2][1:4] == ("error", "p", 0)
    assert "Invalid topic name 'bad'" in heard[2][4]


async def test_too_many_requests_of_a_plugin_passes() -> None:
    with pytest.raises(Refused, match=r"TooManyRequests: later"):
        await asked({"p": answering(raising(TooManyRequests("later", reason="mine")))})

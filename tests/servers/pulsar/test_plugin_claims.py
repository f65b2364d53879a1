"""Hashes that plugins give, and their word that nothing has changed, as clients of the protocol see them."""

from __future__ import annotations

import pytest

from broker_core import TopicListingResult
from broker_core.listing.listing_hash import topics_hash
from tests.support.plugin_answers import (
    A,
    B,
    C,
    answering,
    asked,
    success,
    topics,
)
from tests.support.pulsar_serving import Serving

OWN = "0badc0de"  # a hash that only the plugin could have made


@pytest.mark.parametrize(
    ("given", "pattern", "used"),
    [
        ([A, B], None, True),
        ([A, B], "t/n/.*", True),  # nothing was removed
        ([A, B], "t/n/a", False),
        ([A, A, B], None, False),  # one collapsed
        ([A, "persistent://t/n/__change_events"], None, False),
    ],
)
async def test_a_plugins_hash_is_sent_where_it_is_believed_and_nothing_is_removed_after_it(
    given: list[str], pattern: str | None, used: bool
) -> None:
    plugin, tables = {"p": answering(success(given, topics_hash=OWN))}, {"p": {"verify_filtered": "never"}}
    answer = await asked(plugin, tables=tables, pattern=pattern)
    assert answer.topics_hash == (OWN if used else topics_hash(answer.topics))

    def counted(s: Serving) -> None:
        assert s.dispatcher.claim_mismatches() == ({"p": 1} if used else {})

    answer = await asked(plugin, pattern=pattern, then=counted)
    assert answer.topics_hash == topics_hash(answer.topics)


async def test_the_clients_hash_still_holds() -> None:
    for pattern, expected in ((None, [A, B, C]), ("t/n/[ab]", [A, B])):
        answer = await asked(
            {"p": answering(success([A, B, C]))}, pattern=pattern, topics_hash=topics_hash(expected)
        )
        assert (topics(answer), answer.changed, answer.filtered) == ([], False, pattern is not None)
    answer = await asked({"p": answering(success([A], topics_hash=OWN))}, topics_hash=OWN)
    assert answer.changed


async def test_unchanged_is_legal_with_the_hash_of_the_request() -> None:
    plugin = {"p": answering(lambda request: TopicListingResult.unchanged(request.topics_hash))}
    answer = await asked(plugin, topics_hash="0123abcd", pattern="t/n/.*")
    assert (topics(answer), answer.changed, answer.topics_hash, answer.filtered) == (
        [],
        False,
        "0123abcd",
        True,
    )
    answer = await asked(plugin, topics_hash="0123abcd")
    assert not answer.filtered

"""Claims of plugins about their answers (filtered, hash): checked, or computed anew."""

from __future__ import annotations

import pytest

from broker_core import TopicListingResult
from broker_core.listing.hashes.topics_hash import topics_hash
from tests.support.memory_lister import MemoryLister
from tests.support.plugin_answers import (
    NAMESPACE,
    STORED,
    A,
    B,
    C,
    answering,
    asked,
    success,
    topics,
)
from tests.support.pulsar_serving import Serving, serving
from tests.support.raw_client import Refused

# -- filtered ----------------------------------------------------------------------------------------------------


async def test_unfiltered_topics_are_filtered_here() -> None:
    answer = await asked({"p": answering(success([A, B, C]))}, pattern="t/n/[ab]")
    assert (topics(answer), answer.filtered, answer.topics_hash) == ([A, B], True, topics_hash([A, B]))


async def test_filtered_topics_are_sent_as_they_are() -> None:
    answer = await asked({"p": answering(success([A, B], filtered=True))}, pattern="t/n/[ab]")
    assert (topics(answer), answer.filtered) == ([A, B], True)


@pytest.mark.parametrize("verify", ["always", "sample"])
async def test_a_lie_about_filtered_is_found_counted_and_logged_once(verify: str) -> None:
    plugin = {"liar": answering(success([A, B, C], filtered=True, topics_hash=topics_hash([A, B, C])))}
    tables = {"liar": {"verify_filtered": verify}}
    async with serving(MemoryLister(STORED), plugin, tables=tables) as s, await s.client() as client:
        for _ in range(3):
            answer = await client.ask(NAMESPACE, pattern="t/n/[ab]")
            assert (topics(answer), answer.filtered, answer.topics_hash) == (
                [A, B],
                True,
                topics_hash([A, B]),
            )
        assert s.dispatcher.claim_mismatches() == {"liar": 3}
        said = [event for event in s.logs if "filtered" in event["event"]]
        assert [(event["plugin"], event["log_level"]) for event in said] == [("liar", "warning")]


async def test_where_the_operator_believes_it_nobody_looks() -> None:
    plugin = {"liar": answering(success([A, C], filtered=True))}
    answer = await asked(plugin, tables={"liar": {"verify_filtered": "never"}}, pattern="t/n/[ab]")
    assert (topics(answer), answer.filtered) == ([A, C], True)


async def test_where_the_pattern_could_not_be_compiled_the_client_filters() -> None:
    answer = await asked({"p": answering(success([A, B], filtered=True))}, pattern="t/n/(?!c).*")
    assert (topics(answer), answer.filtered) == ([A, B], False)


async def test_without_a_pattern_nothing_is_filtered() -> None:
    assert not (await asked({"p": answering(success([A], filtered=True))})).filtered


# -- hashes ------------------------------------------------------------------------------------------------------

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


async def test_a_wrong_hash_is_never_sent_and_logged_once() -> None:
    plugin = {"p": answering(success([A, B], topics_hash=OWN))}
    async with serving(MemoryLister(STORED), plugin) as s, await s.client() as client:
        for _ in range(3):
            assert (await client.ask(NAMESPACE)).topics_hash == topics_hash([A, B])
        assert s.dispatcher.claim_mismatches() == {"p": 3}
        assert [event["event"] for event in s.logs if event.get("plugin") == "p"] == [
            "plugin gave a wrong topics hash; the server computes it"
        ]
    right = {"p": answering(success([A, B], topics_hash=topics_hash([A, B])))}
    async with serving(MemoryLister(STORED), right) as s, await s.client() as client:
        assert (await client.ask(NAMESPACE)).topics_hash == topics_hash([A, B])
        assert not s.dispatcher.claim_mismatches()


async def test_a_hash_that_is_none_is_an_error() -> None:
    with pytest.raises(
        Refused, match=r"MetadataError: plugin 'p' returned a topics hash that is none: 'nonsense"
    ):
        await asked({"p": answering(success([A], topics_hash="nonsense" * 50))})


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


@pytest.mark.parametrize("given", [None, "0123abcd", ""])
async def test_unchanged_is_illegal_with_any_other(given: str | None) -> None:
    plugin = {"p": answering(TopicListingResult.unchanged("76543210"))}
    with pytest.raises(
        Refused, match=r"MetadataError: plugin 'p' gave a wrong answer: it returned unchanged"
    ):
        await asked(plugin, topics_hash=given)

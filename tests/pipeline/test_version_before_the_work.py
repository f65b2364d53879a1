"""Versions before the listing: which cached answers are reused, and which answers are stored."""

from __future__ import annotations

from typing import Any

import pytest
from structlog.testing import capture_logs

from broker_core import Asker, ListingRequest, RestAnswer, TopicListingResult
from broker_core.errors import ListingFailed
from broker_core.pipeline import Trace
from tests.support.chain_plugins import A, B, C, asks, success
from tests.support.memory_lister import MemoryLister
from tests.support.pipelines import made, names, request
from tests.support.plugins import PluginOf


class Versioned:
    """Answers ``topics`` under ``version``; counts how often it is asked."""

    def __init__(self, *topics: str) -> None:
        self.version: Any = "1"
        self.topics = list(topics)
        self.asked = 0
        self.told = 0

    def plugin(self, *on: str, **more: Any) -> PluginOf:
        async def broker_core_version(request: ListingRequest) -> Any:
            self.told += 1
            if isinstance(self.version, BaseException):
                raise self.version
            return self.version

        async def broker_core_list_topics(request: ListingRequest) -> TopicListingResult:
            self.asked += 1
            return success(self.topics)

        return PluginOf(
            version=broker_core_version,
            list_topics=broker_core_list_topics,
            depends_on=lambda: set(on),
            **more,
        )


async def test_a_plugin_is_not_asked_while_its_version_is_the_same() -> None:
    source = Versioned(A, B)
    async with made(plugins={"p": source.plugin()}) as m:
        for _ in range(3):
            assert names(await m.ask()) == [A, B]
            assert names(await m.ask(pattern="t/n/a")) == [A]
        assert (source.asked, source.told) == (1, 7)  # once more where it was asked
        source.version, source.topics = "2", [C]
        assert names(await m.ask()) == [C]
        assert (await m.ask(topics_hash=(await m.ask()).topics_hash)).changed is False
        assert source.asked == 2
        trace = Trace()
        names(await m.pipeline.answer(request(), trace))
        assert [(step.answer, step.kept, step.version) for step in trace.chain] == [("success", True, "2")]


async def test_without_a_version_it_is_asked_each_time() -> None:
    source = Versioned(A)
    source.version = None
    async with made(plugins={"p": source.plugin()}) as m:
        for _ in range(3):
            assert names(await m.ask()) == [A]
    assert source.asked == 3


@pytest.mark.parametrize(("on", "asked"), [(("principal",), 2), ((), 1)])
async def test_an_answer_is_taken_for_what_the_plugin_depends_on(on: tuple[str, ...], asked: int) -> None:
    source = Versioned(A)
    async with made(plugins={"p": source.plugin(*on)}) as m:
        for role in ("me", "you", "me"):
            names(await m.ask(asker=Asker(role=role)))
    assert source.asked == asked


async def test_what_changes_and_changes_back_while_it_is_asked_is_not_kept() -> None:
    state = A

    async def listing(request: ListingRequest) -> TopicListingResult:
        nonlocal state
        state = B if first else A
        listed = [state]
        state = A  # rolled back before the next question
        told.append("asked")
        return success(listed)

    async def version(request: ListingRequest) -> str:
        nonlocal state
        told.append("version")
        if first and told[-2:] == ["asked", "version"]:
            return B
        return state

    told: list[str] = []
    first = True
    async with made(plugins={"p": PluginOf(list_topics=listing, version=version)}) as m:
        assert names(await m.ask()) == [B]
        first = False
        assert names(await m.ask()) == [A]
        assert names(await m.ask()) == [A]
    assert told == ["version", "asked", "version", "version", "asked", "version", "version"]


async def test_what_changes_while_it_is_asked_is_newer_than_its_version_and_asked_again() -> None:
    source = Versioned(A)

    async def broker_core_list_topics(request: ListingRequest) -> TopicListingResult:
        source.asked += 1
        source.version = "2"  # between the version and the names
        return success([A, B])

    plugin = source.plugin()
    plugin.broker_core_list_topics = PluginOf(  # type: ignore[attr-defined]
        list_topics=broker_core_list_topics
    ).broker_core_list_topics
    async with made(plugins={"p": plugin}) as m:
        assert names(await m.ask()) == [A, B]
        assert names(await m.ask()) == [A, B]
        assert names(await m.ask()) == [A, B]
        assert source.asked == 2  # under "1", then under "2"


@pytest.mark.parametrize("wrong", [7, OSError("away"), "x" * 5000])
async def test_a_version_that_fails_is_the_plugins_failure(wrong: Any) -> None:
    source = Versioned(A)
    source.version = wrong
    for on_failure in ("error", "next"):
        async with made(
            MemoryLister([B], at_once=False), {"p": source.plugin()}, tables={"p": {"on_failure": on_failure}}
        ) as m:
            if on_failure == "next":
                assert names(await m.ask()) == [B]
            else:
                with pytest.raises(ListingFailed, match="plugin 'p'"):
                    await m.ask()
            assert m.pipeline.dispatcher.describe()[0]["calls"]["version"]["answers"] == {"error": 1}
    assert source.asked == 0


async def test_a_plugin_that_says_that_its_topics_changed_is_asked_again() -> None:
    source = Versioned(A)
    async with made(plugins={"p": source.plugin()}) as m:
        names(await m.ask())
        m.pipeline.changes.announce(request().namespace)
        names(await m.ask())
        m.pipeline.changes.announce(None)
        names(await m.ask())
    assert source.asked == 3


async def test_what_is_made_of_the_rest_is_asked_for_each_time() -> None:
    """What is behind may change without the plugin's version."""
    asked = 0

    async def broker_core_list_topics(request: ListingRequest) -> TopicListingResult:
        nonlocal asked
        asked += 1
        return success((await request.rest()).selection)

    plugin = PluginOf(list_topics=broker_core_list_topics, version=lambda: "1")
    lister = MemoryLister([A], at_once=False)
    async with made(lister, {"p": plugin}) as m:
        assert names(await m.ask()) == [A]
        lister.names.append(B)
        lister._listings.clear()
        assert names(await m.ask()) == [A, B]
    assert asked == 2


async def test_a_version_in_the_rest_is_that_of_the_answer() -> None:
    source, seen = Versioned(A), list[RestAnswer]()
    async with made(plugins={"a": asks(seen=seen), "p": source.plugin()}) as m:
        for _ in range(2):
            assert names(await m.ask()) == [A]
    assert [answer.version for answer in seen] == ["1", "1"]
    assert seen[0].selection.listing is seen[1].selection.listing
    assert source.asked == 1


async def test_who_declares_the_client_and_reads_the_address_shares_with_no_other_address() -> None:
    async def broker_core_list_topics(request: ListingRequest) -> TopicListingResult:
        return success([A] if request.asker.host == "192.0.2.1" else [B])

    plugin = PluginOf(list_topics=broker_core_list_topics, version=lambda: "1", depends_on=lambda: {"client"})
    async with made(plugins={"p": plugin}) as m:
        with capture_logs() as logs:
            for host, expected in (("1", A), ("2", B), ("1", A)):
                asker = Asker(remote_address=f"192.0.2.{host}:4000{host}")
                assert names(await m.ask(asker=asker)) == [expected]
        assert [each["word"] for each in logs if "word" in each] == ["address"]
        assert m.pipeline.dispatcher.describe()[0]["depends_on"] == ["address", "client"]

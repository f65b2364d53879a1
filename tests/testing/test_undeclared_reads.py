"""The test kit finds fields that a plugin reads and does not declare."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping
from typing import Any

import pyarrow as pa
import pytest

from broker_core import ListingRequest, Mode, NamespaceName, TopicListingResult, hookimpl
from broker_core.testing import BlockingServer, Server, serve

TOPIC = "persistent://public/default/a"


class Reader:
    """ReadFields what ``use`` reads, and declares ``words``."""

    def __init__(self, use: Callable[[ListingRequest], Any], words: Collection[str] | None) -> None:
        self.use = use
        self.words = words

    @hookimpl
    def broker_core_depends_on(self) -> Collection[str] | None:
        return self.words

    @hookimpl
    async def broker_core_list_topics(self, request: ListingRequest) -> TopicListingResult:
        self.use(request)
        return TopicListingResult.success([TOPIC])


async def asked(plugin: object, *, check_reads: bool = True) -> None:
    async with serve({"mine": plugin}, check_reads=check_reads) as server:
        await server.list("public/default", pattern=".*", properties={"team": "a"}, role="eve")


@pytest.mark.parametrize(
    ("use", "words"),
    [
        (lambda r: r.properties.get("team"), {"properties"}),
        (lambda r: r.properties["team"], {"property:team"}),
        (lambda r: (r.pattern, r.topics_pattern), {"pattern"}),
        (lambda r: r.asker.role, {"principal", "address"}),
        (lambda r: (r.asker.role, r.properties.get("x")), None),
        (lambda r: (r.namespace, r.mode, r.topics_hash, r.page, r.wants, r.deadline), set()),
    ],
)
async def test_what_is_declared_may_be_read(
    use: Callable[[ListingRequest], Any], words: set[str] | None
) -> None:
    await asked(Reader(use, words))


@pytest.mark.parametrize(
    ("use", "words", "told"),
    [
        (lambda r: r.properties.get("team"), {"property:region"}, "property:team"),
        (lambda r: dict(r.properties), {"property:team"}, "properties"),
        (lambda r: r.topics_pattern, {"properties"}, "pattern"),
        (lambda r: r.asker.role, set(), "principal"),
        (lambda r: r.asker.host, {"client"}, "address"),
        (lambda r: r.asker.client_version, {"principal"}, "client"),
    ],
)
async def test_what_is_not_is_told_at_the_end(
    use: Callable[[ListingRequest], Any], words: set[str], told: str
) -> None:
    with pytest.raises(AssertionError, match=f"plugin 'mine' reads request.* does not say '{told}'"):
        await asked(Reader(use, words))
    await asked(Reader(use, words), check_reads=False)


async def test_in_threads_by_arguments_and_by_masks() -> None:
    class Threaded:
        @hookimpl
        def broker_core_depends_on(self) -> set[str]:
            return set()

        @hookimpl
        def broker_core_list_topics(
            self, namespace: NamespaceName, mode: Mode, properties: Mapping[str, str]
        ) -> TopicListingResult | None:
            return TopicListingResult.success([TOPIC]) if "team" in properties else None

    class Masks:
        @hookimpl
        def broker_core_depends_on(self) -> set[str]:
            return {"properties"}

        @hookimpl
        async def broker_core_visible(self, request: ListingRequest, topics: Any) -> Any:
            return pa.array([request.asker.role == "eve"] * len(topics))

    with pytest.raises(AssertionError) as told:
        async with serve({"threaded": Threaded(), "masks": Masks()}) as server:
            await server.list("public/default", properties={"team": "a"})
    assert "plugin 'threaded' reads request.properties['team']" in str(told.value)
    assert "plugin 'masks' reads request.asker.role" in str(told.value)


async def test_the_test_s_own_failure_comes_first() -> None:
    with pytest.raises(ZeroDivisionError):
        async with serve({"mine": Reader(lambda r: r.asker.role, set())}) as server:
            await server.list("public/default")
            raise ZeroDivisionError


async def test_asking_the_rest_reads_nothing() -> None:
    class Asks:
        @hookimpl
        def broker_core_depends_on(self) -> set[str]:
            return set()

        @hookimpl
        async def broker_core_list_topics(self, request: ListingRequest) -> TopicListingResult:
            request.key(pattern=None)
            async with request.lease(1000):
                await request.reserve(2000)
                return TopicListingResult.success((await request.rest(pattern=None)).selection)

    async with serve({"asks": Asks()}, topics=[TOPIC]) as server:
        both: list[Any] = await asyncio.gather(*(_list(server, role) for role in ("eve", "bob")))
        assert both == [[TOPIC], [TOPIC]]


async def _list(server: Server, role: str) -> list[str]:
    return (await server.list("public/default", pattern=".*a", role=role)).topics


def test_without_async_it_is_told_at_the_end_too() -> None:
    server = BlockingServer({"mine": Reader(lambda r: r.asker.role, set())})
    with pytest.raises(AssertionError, match="principal"), server:
        server.list("public/default")
    with (
        pytest.raises(ZeroDivisionError),
        BlockingServer({"mine": Reader(lambda r: r.asker.role, set())}) as server,
    ):
        server.list("public/default")
        raise ZeroDivisionError

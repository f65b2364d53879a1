"""A plugin that writes to its arguments changes nothing for other plugins or the core."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest

from broker_core import Access, ListingRequest, Page, Position, Refused, hookimpl
from broker_core.client import LookupSession
from broker_core.errors import BrokerCoreError
from broker_core.names import Mode
from broker_core.testing import serve

NAMESPACE, SECRET = "t/n", "t/secret"
TOPICS = [f"persistent://t/n/{name}" for name in ("a", "b", "c", "d")]


class WritesInComparing:
    def __init__(self, pairs: dict[str, str]) -> None:
        self.pairs = pairs

    def _write(self, other: Any) -> Any:
        other.update(self.pairs)
        return True

    __eq__ = __ror__ = _write
    __hash__ = None  # type: ignore[assignment]


def write(owner: object, **fields: object) -> None:
    for name, value in fields.items():
        with suppress(AttributeError, TypeError):
            object.__setattr__(owner, name, value)


class Writes:
    """Writes to all of a request, in each hook that gets one."""

    def write(self, request: ListingRequest) -> None:
        write(request.asker, role="admin", remote_address="198.51.100.1:1", client_version="other")
        with suppress(AttributeError, TypeError):
            request.asker.__init__(role="admin")  # type: ignore[misc]
        for use in (lambda: request.properties == self.evil, lambda: request.properties | self.evil):
            with suppress(AttributeError, TypeError):
                use()
        with suppress(AttributeError, TypeError):
            request.namespace.__init__("t", "other")  # type: ignore[misc]
        if request.page is not None:
            if request.page.start is not None:
                write(request.page.start, base="persistent://t/n/a")
            write(request.page, limit=100, start=None)
        write(request, page=None, properties={}, asker=None, wants=frozenset())

    evil = WritesInComparing({"team": "evil"})

    @hookimpl
    def broker_core_list_topics(self, request: ListingRequest) -> None:
        self.write(request)

    @hookimpl
    def broker_core_visible(self, request: ListingRequest, topics: Any) -> None:
        self.write(request)

    @hookimpl
    def broker_core_version(self, request: ListingRequest) -> None:
        self.write(request)

    @hookimpl
    def broker_core_authorize(self, access: Access) -> None:
        write(access.asker, role="admin")
        write(access, asker=None, namespace=None, action="schema")


class Looks:
    def __init__(self) -> None:
        self.seen: list[Any] = []

    @hookimpl
    def broker_core_authorize(self, access: Access) -> Refused | None:
        self.seen.append((access.action, str(access.namespace), access.asker.role))
        refused = str(access.namespace) == SECRET and access.asker.role != "admin"
        return Refused("for admins") if refused else None

    @hookimpl
    def broker_core_visible(self, request: ListingRequest, topics: Any) -> None:
        self.seen.append((str(request.namespace), request.asker.role, tuple(request.properties.items())))


async def test_who_asks_stays_who_asks_for_the_whole_connection() -> None:
    looks = Looks()
    topics = [*TOPICS, "persistent://t/secret/x"]
    async with (
        serve(plugins={"writes": Writes(), "looks": looks}, topics=topics) as server,
        LookupSession(server.url) as client,
    ):
        for _ in range(2):
            listed = await client.get_topics(NAMESPACE, Mode.PERSISTENT, properties={"team": "a"})
            assert listed.topics == TOPICS
            with pytest.raises(BrokerCoreError, match="for admins"):
                await client.get_topics(SECRET, Mode.PERSISTENT)
    assert set(looks.seen) == {
        ("list", NAMESPACE, None),
        (NAMESPACE, None, (("team", "a"),)),
        ("list", SECRET, None),
    }


async def test_a_page_stays_the_page_that_was_asked_for() -> None:
    async with serve(plugins={"writes": Writes()}, topics=TOPICS) as server:
        page = await server.ask(NAMESPACE, page=Page(Position.of(TOPICS[1]), 2))
        assert (page.topics, page.next) == (TOPICS[1:3], Position.of(TOPICS[3]))

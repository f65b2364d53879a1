"""Passes over all pages while topics come and go, compared with the names that were there."""

from __future__ import annotations

import http.client
import itertools
import json
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlencode, urlsplit

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker_core.catalog import SqliteCatalog
from broker_core.listing.pages.page import Position
from broker_core.names import TopicName
from broker_core.testing import BlockingServer
from tests.support.examples import examples
from tests.support.topics import local_names

#: Local names that are prefixes of each other and of partitions, on both sides of the surrogates, beside any others.
LOCALS = local_names() | st.lists(
    st.sampled_from(["a", "-", "-partition-", "-partition-1", "1", "!", "\U0001f600", "\uffee", '"', "\n"]),
    min_size=1,
    max_size=3,
).map("".join)
TOPICS = st.tuples(st.sampled_from(["persistent", "non-persistent"]), LOCALS, st.integers(0, 3))
#: Topics that come and go between two pages.
CHANGES = st.lists(
    st.tuples(st.lists(TOPICS, max_size=3), st.lists(st.integers(0, 30), max_size=3)), max_size=8
)


@dataclass
class Place:
    """A server, a connection to its API, and its catalogue."""

    connection: http.client.HTTPConnection
    catalog: SqliteCatalog

    def page(self, namespace: str, cursor: str | None, limit: int) -> tuple[list[str], str | None]:
        query = {"limit": limit, "mode": "all"} | ({} if cursor is None else {"cursor": cursor})
        self.connection.request("GET", f"/v1/namespaces/{namespace}/topics?{urlencode(query)}")
        response = self.connection.getresponse()
        said = json.loads(response.read())
        assert response.status == 200, said
        return said["items"], said["next"]

    def names(self, namespace: str) -> set[str]:
        """All names that are listed."""
        self.connection.request("GET", f"/v1/namespaces/{namespace}/topics?mode=all")
        return set(json.loads(self.connection.getresponse().read())["items"])


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    path: Path = tmp_path_factory.mktemp("passes") / "topics.sqlite"
    with BlockingServer(settings={"catalog": {"path": str(path)}}) as server, SqliteCatalog(path) as catalog:
        address = urlsplit(server.http_url)
        assert address.hostname is not None
        with closing(http.client.HTTPConnection(address.hostname, address.port)) as connection:
            yield Place(connection, catalog)


NUMBERS = itertools.count()


@settings(max_examples=examples(40))
@given(st.lists(TOPICS, max_size=12), CHANGES, st.integers(1, 5))
def test_no_name_twice_and_none_missed_that_was_there_throughout(
    place: Place,
    first: list[tuple[str, str, int]],
    changes: list[tuple[list[tuple[str, str, int]], list[int]]],
    limit: int,
) -> None:
    namespace = f"public/n{next(NUMBERS)}"
    topics: list[TopicName] = []

    def create(wanted: list[tuple[str, str, int]]) -> None:
        for domain, local, partitions in wanted:
            name = TopicName.parse(f"{domain}://{namespace}/{local}")
            if name.is_system or name.partition >= 0 or place.catalog.topic(name) is not None:
                continue
            place.catalog.create(name, partitions=partitions)
            topics.append(name)

    def delete(numbers: list[int]) -> None:
        for number in numbers:
            if number < len(topics):
                place.catalog.delete(topics.pop(number))

    create(first)
    throughout = ever = place.names(namespace)
    pages: list[str] = []
    cursor: str | None = None
    for coming, going in itertools.chain(changes, itertools.repeat(([], []))):
        items, cursor = place.page(namespace, cursor, limit)
        assert len(items) == limit or cursor is None
        pages += items
        assert len(pages) == len(set(pages))  # here, or a pass that stands still would not end
        if cursor is None:
            break
        create(coming)
        delete(going)
        now = place.names(namespace)
        throughout, ever = throughout & now, ever | now
    assert throughout <= set(pages) <= ever
    assert pages == [each.name for each in sorted(map(Position.of, pages))]

"""Changes of topics for clients: their rights, and what each request makes of the topics."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from broker_core.access.asker import Access, Asker, Refused
from broker_core.access.authorization import Authorization
from broker_core.catalog import (
    AsyncCatalog,
    CatalogBusy,
    Edit,
    PreconditionFailed,
    SqliteCatalog,
    TopicExists,
    TopicRecord,
    TopicWrite,
    creation,
    deletion,
    merge,
)
from broker_core.errors import Cause, ListingFailed
from broker_core.names import TopicName
from broker_core.service import Attempt, TopicEditor
from broker_core.settings import AuthorizationSettings
from tests.support.pipelines import made
from tests.support.plugins import PluginOf

X, Y, Z = (TopicName.parse(f"persistent://acme/shop/{name}") for name in "xyz")
NAMESPACE = X.namespace


def attempt(role: str = "alice", transport: str = "http") -> Attempt:
    return Attempt("put_topic", Asker(role, transport=transport))


def made_of(topic: TopicName) -> Edit:
    return Edit(topic, creation(topic, 1))


def catalog_of(changes: TopicEditor) -> AsyncCatalog:
    assert isinstance(changes.catalog, AsyncCatalog)
    return changes.catalog


@asynccontextmanager
async def changing(
    folder: Path, gate: Callable[..., object] | None = None, rules: Any = None, *, over_http: bool = True
) -> AsyncIterator[TopicEditor]:
    plugins = None if gate is None else {"gate": PluginOf(authorize=gate)}
    async with made(plugins=plugins) as m:
        if rules is not None:
            settings = AuthorizationSettings.model_validate({"rules": rules})
            m.pipeline.authorization = Authorization(settings, authentication=True)
        with SqliteCatalog(folder / "topics.sqlite") as file:
            catalog = AsyncCatalog(file)
            try:
                yield TopicEditor(catalog, m.pipeline, over_http=over_http)
            finally:
                await asyncio.to_thread(catalog.close)


async def test_the_edits_of_a_request_are_one_version_and_each_stands_for_itself(tmp_path: Path) -> None:
    async with changing(tmp_path) as changes:
        await changes.change_one(attempt(), made_of(Y))
        request = attempt()
        first, refused, last = await changes.change(request, [made_of(each) for each in (X, Y, Z)])
        assert isinstance(first, TopicWrite)
        assert isinstance(last, TopicWrite)
        assert isinstance(refused, TopicExists)
        assert first.version == last.version == catalog_of(changes).file.version(NAMESPACE)
        assert request.fields["version"] == f"{first.version}.{first.version.stamp}"
        assert request.unchanged == set()
        same = await changes.change_one(request, Edit(X, merge(X, {})))
        assert (same.changed, request.unchanged) == (False, {str(X)})
        with pytest.raises(TopicExists):
            await changes.change_one(attempt(), made_of(X))


async def test_a_requirement_is_about_what_is_there(tmp_path: Path) -> None:
    def refuse(topic: TopicRecord | None) -> None:
        assert topic is None
        raise PreconditionFailed("there is none")

    async with changing(tmp_path) as changes:
        with pytest.raises(PreconditionFailed):
            await changes.change_one(attempt(), Edit(X, creation(X), refuse))
        assert catalog_of(changes).file.topic(X) is None


async def test_nothing_to_change_begins_no_transaction(tmp_path: Path) -> None:
    async with changing(tmp_path, lambda access: Refused("no")) as changes:
        assert await changes.change(attempt(), []) == []
        (refused,) = await changes.change(attempt(), [made_of(X)])
        assert isinstance(refused, ListingFailed)
        assert catalog_of(changes).file.version(NAMESPACE).number == 0


async def test_a_catalogue_that_others_write_fails_all_of_a_request_in_its_time(tmp_path: Path) -> None:
    async with changing(tmp_path) as changes:
        with SqliteCatalog(tmp_path / "topics.sqlite") as file:
            other = file.connect()
            other.execute("BEGIN IMMEDIATE")
            soon = asyncio.get_running_loop().time() + 0.05
            done = await changes.change(attempt(), [made_of(X), made_of(Y)], soon)
            other.execute("ROLLBACK")
            other.close()
        assert [type(each) for each in done] == [CatalogBusy, CatalogBusy]
        assert await catalog_of(changes).found([X, Y]) == [(None, 0), (None, 0)]


async def test_rights_to_each_topic_are_asked_once_in_an_attempt(tmp_path: Path) -> None:
    asked: list[Access] = []

    def gate(access: Access) -> Refused | None:
        asked.append(access)
        return Refused("not this one") if access.topic == Y else None

    rules = [{"roles": ["alice"], "namespaces": ["acme/shop"], "actions": ["*"]}]
    async with changing(tmp_path, gate, rules) as changes:
        request = attempt()
        await changes.allow(request, X)
        denied = await changes.refusals(request, [X, Y])
        assert [(topic, refusal.cause) for topic, refusal in denied.items()] == [(Y, Cause.DENIED)]
        first, refused, last = await changes.change(request, [made_of(each) for each in (X, Y, Z)])
        assert isinstance(first, TopicWrite)
        assert isinstance(last, TopicWrite)
        assert refused is denied[Y]
        assert [(each.action, each.namespace, each.topic) for each in asked] == [
            ("admin", NAMESPACE, topic) for topic in (X, Y, Z)
        ]
        found = attempt("bob")
        with pytest.raises(ListingFailed, match="no right to"):
            await changes.change_one(attempt("bob"), Edit(X, deletion(X)))
        found.allowed([X])  # by whatever found it
        assert (await changes.change_one(found, Edit(X, deletion(X)))).after is None
        assert len(asked) == 3


@pytest.mark.parametrize("transport", ["http", "operator", "kafka"])
async def test_changes_over_http_may_be_off(transport: str, tmp_path: Path) -> None:
    async with changing(tmp_path, over_http=False) as changes:
        (done,) = await changes.change(attempt(transport=transport), [made_of(X)])
        if transport == "kafka":
            assert isinstance(done, TopicWrite)
            return
        assert isinstance(done, ListingFailed)
        assert (done.cause, "writes = false" in done.message) == (Cause.NOT_ALLOWED, True)
        with pytest.raises(ListingFailed, match="writes = false"):
            changes.check_transport(attempt(transport=transport).asker or Asker())


async def _body(*names: str, read: list[str] | None = None) -> AsyncIterator[bytes]:
    for name in names:
        if read is not None:
            read.append(name)
        yield b'{"name": "%b"}\n' % name.encode()


async def test_an_import_is_allowed_before_it_is_read_and_for_each_of_its_topics(tmp_path: Path) -> None:
    asked: list[TopicName | None] = []
    read: list[str] = []

    def gate(access: Access) -> Refused | None:
        asked.append(access.topic)
        return Refused("no") if access.asker.role == "bob" or access.topic == Y else None

    async with changing(tmp_path, gate) as changes:
        with pytest.raises(ListingFailed, match="no"):
            await changes.import_topics(attempt("bob"), NAMESPACE, _body("x", read=read))
        assert (asked, read) == ([None], [])
        request = attempt()
        report = await changes.import_topics(request, NAMESPACE, _body("x", "z"))
        assert (report.created, set(asked[1:])) == (2, {None, X, Z})
        assert {**request.fields, "version": ""} == {"created": 2, "updated": 0, "deleted": 0, "version": ""}
        with pytest.raises(ListingFailed, match="no"):
            await changes.import_topics(attempt(), NAMESPACE, _body("y"))
        again = attempt()
        await changes.import_topics(again, NAMESPACE, _body("x"))
        assert again.unchanged == {""}

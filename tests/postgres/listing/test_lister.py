"""Listings from the database: their state, what passes through, and their memory."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
import re2

from broker_core import ListingRequest, Mode, NamespaceName, TopicListingResult
from broker_core.errors import ListingFailed
from broker_core.listing.listing_hash import topics_hash
from broker_core.patterns import compile_pattern
from broker_core_postgres.listing import lister as lister_of_topics
from broker_core_postgres.listing import listing_sql as statements
from broker_core_postgres.listing import pages
from broker_core_postgres.listing.lister import (
    PostgresLister,
    _key_bytes,
    _QuestionKey,
    selecting_properties,
)
from broker_core_postgres.settings import PostgresSettings
from tests.postgres.listing.lister_setup import Row, fill, opened_lister
from tests.support.eventually import eventually
from tests.support.postgres_server import Database

NS = "acme/orders"


def asking(pattern: str | None = None, namespace: str = NS, **fields: Any) -> ListingRequest:
    compiled = None if pattern is None else compile_pattern(pattern)
    return ListingRequest(NamespaceName.parse(namespace), pattern=compiled, **fields)


def names(result: TopicListingResult) -> list[str]:
    listed: list[str] = result.topics.names.to_pylist()  # type: ignore[union-attr]
    return [name.rpartition("/")[2] for name in listed]


def plain(*locals_: str) -> list[Row]:
    return [("persistent", local, {}) for local in locals_]


async def test_never_loaded_passes_through_and_loaded_without_topics_is_empty(database: Database) -> None:
    async with opened_lister(database) as lister:
        assert (await lister.list_topics(asking())).is_pass_through
        assert (await lister.list_topics(asking(f"{NS}/a.*"))).is_pass_through
        assert (await lister.list_topics(asking("no/where"))).is_pass_through
        await fill(database, NS, plain("a"))
        database.sql("DELETE FROM broker_core.topics")
        for pattern in (None, f"{NS}/a", "no/where", ".*abc.*"):
            answer = await lister.list_topics(asking(pattern))
            assert names(answer) == []
            assert answer.filtered is (pattern is not None)
            assert answer.version is not None


async def test_properties_select_by_the_keys_of_the_settings(database: Database) -> None:
    rows: list[Row] = [
        ("persistent", "a", {"region": "eu", "team": "x"}),
        ("persistent", "b", {"region": "eu", "team": "y"}),
        ("non-persistent", "c", {"region": "eu"}),
        ("persistent", "d", {}),
    ]
    await fill(database, NS, rows)
    async with opened_lister(database, property_keys=["region", "team"]) as lister:

        async def ask(mode: Mode = Mode.ALL, **properties: str) -> list[str]:
            return sorted(names(await lister.list_topics(asking(mode=mode, properties=properties))))

        assert await ask() == ["a", "b", "c", "d"]
        assert await ask(region="eu") == ["a", "b", "c"]
        assert await ask(region="eu", team="x", owner="me") == ["a"]
        assert await ask(mode=Mode.NON_PERSISTENT, region="eu") == ["c"]
        assert await ask(region="nowhere") == []
        assert await ask(region='"} OR true --') == []
        assert await ask(region="e\0u") == []


async def test_only_with_properties(database: Database) -> None:
    await fill(database, NS, [("persistent", "a", {"region": "eu"})])
    async with opened_lister(database, property_keys=["region"], only_with_properties=True) as lister:
        assert (await lister.list_topics(asking())).is_pass_through
        assert (await lister.list_topics(asking(properties={"owner": "me"}))).is_pass_through
        assert names(await lister.list_topics(asking(properties={"region": "eu"}))) == ["a"]


def test_the_keys_that_select() -> None:
    settings = PostgresSettings(property_keys=("a", "b"))
    assert selecting_properties(settings, {"b": "1", "c": "2"}) == {"b": "1"}
    assert selecting_properties(settings, {}) == {}


async def test_the_version_is_told_where_an_answer_may_be_kept(database: Database) -> None:
    await fill(database, NS, plain("a", "b"))
    async with opened_lister(database, property_keys=["k"]) as lister:
        first = asking(f"{NS}/a.*")
        assert await lister.version(first) is None, "asked for the first time: a look more for nothing"
        answer = await lister.list_topics(first)
        assert await lister.version(first) == answer.version
        assert await lister.version(asking(f"{NS}/b.*")) is None
        assert await lister.version(asking(f"{NS}/a.*", properties={"k": "v"})) is None
        assert await lister.version(asking(f"{NS}/a.*", properties={"other": "v"})) == answer.version
        same = asking(f"{NS}/a.*", topics_hash=answer.topics.topics_hash)  # type: ignore[union-attr]
        assert await lister.version(same) is None, "the lister says so by one look itself"
        other = asking(f"{NS}/a.*", topics_hash="00000001")
        assert await lister.version(other) == answer.version
        await fill(database, NS, plain("c"))
        changed = await lister.version(first)
        assert changed not in {None, answer.version}
        assert (await lister.list_topics(first)).version == changed
        database.sql(f"SELECT broker_core.forget_namespace('{NS}')")
        assert await lister.version(first) is None
        assert (await lister.list_topics(first)).is_pass_through


async def test_replicas_that_may_be_behind_have_no_version_ahead(database: Database) -> None:
    await fill(database, NS, plain("a"))
    async with opened_lister(database, replicas=[database.dsn], replica_max_lag=2) as lister:
        await lister.list_topics(asking())
        assert await lister.version(asking()) is None
    async with opened_lister(database, replicas=[database.dsn]) as lister:
        await lister.list_topics(asking())
        assert await lister.version(asking()) is not None
    async with opened_lister(database, replica_max_lag=2) as lister:
        await lister.list_topics(asking())
        assert await lister.version(asking()) is not None, "there is no replica"


async def test_an_unchanged_listing_reads_no_row(database: Database) -> None:
    await fill(database, NS, plain("a", "b"))
    async with opened_lister(database) as lister:
        first = await lister.list_topics(asking())
        hash_ = topics_hash([f"persistent://{NS}/a", f"persistent://{NS}/b"])
        assert first.topics.topics_hash == hash_  # type: ignore[union-attr]
        request = asking(topics_hash=hash_)
        assert await rows_of(lister, request) is None
        assert (await lister.list_topics(request)).topics_hash == hash_
        # The hash is remembered for another question: this one is answered from its rows.
        assert await rows_of(lister, asking(f"{NS}/.*", topics_hash=hash_)) == 2
        await fill(database, NS, plain("c"))
        changed = await lister.list_topics(request)
        assert names(changed) == ["a", "b", "c"]
        assert changed.version != first.version
        # A change and its reversal: the hash is the old one, the version is a new one.
        database.sql("DELETE FROM broker_core.topics WHERE local_name = 'c'")
        assert await rows_of(lister, request) == 2
        assert await rows_of(lister, request) is None


async def rows_of(lister: PostgresLister, request: ListingRequest) -> int | None:
    return (await lister.answer(request, lister.row_conditions(request)))[1]


async def test_a_version_that_went_back_is_another_state(database: Database) -> None:
    await fill(database, NS, plain("a"))
    await fill(database, NS, plain("b"))
    async with opened_lister(database) as lister:
        before = await lister.list_topics(asking())
        hash_ = before.topics.topics_hash  # type: ignore[union-attr]
        # As after restoring a backup: the version's number returns, with other topics.
        database.sql("ALTER TABLE broker_core.topics DISABLE TRIGGER USER")
        database.sql("DELETE FROM broker_core.topics WHERE local_name = 'b'")
        database.sql("UPDATE broker_core.namespace_versions SET version = 1")
        assert names(await lister.list_topics(asking(topics_hash=hash_))) == ["a"]
        database.sql("UPDATE broker_core.namespace_versions SET version = 2")
        again = await lister.list_topics(asking(topics_hash=hash_))
        assert names(again) == ["a"]
        assert again.version != before.version


@pytest.mark.parametrize("pattern", [None, f"{NS}/n.*", f"{NS}/(?:n1|n5|x).*", ".*n.*7.*", f"{NS}/[m-o].*"])
@pytest.mark.parametrize("selecting", [False, True], ids=["rows", "properties"])
async def test_many_pages_are_one_state(
    database: Database, pattern: str | None, selecting: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(statements, "PAGE_NAMES", 10)
    monkeypatch.setattr(pages, "PAGE_NAMES", 10)
    rows: list[Row] = [
        (domain, f"n{index:03d}{suffix}", {"k": "v"})
        for index in range(60)
        for domain, suffix in (("persistent", ""), ("non-persistent", "-partition-1"))
    ]
    await fill(database, NS, rows)
    # Behind a pooler of transactions no prepared statement may stay in the session; directly, they do.
    prepared = "off" if selecting else "on"
    async with opened_lister(database, property_keys=["k"], prepared_statements=prepared) as lister:
        lister.trigrams = not selecting
        properties = {"k": "v"} if selecting else {}
        asked = asking(pattern, mode=Mode.ALL, properties=properties)
        found = sorted(names(await lister.list_topics(asked)))
        matches = compile_pattern(pattern or ".*").matches
        wanted = sorted(local for domain, local, _ in rows if matches(f"{domain}://{NS}/{local}"))
        assert found == wanted
        # Each answer is of one state, while others write: one version has 120 names, the next 121, and so on.
        writer = asyncio.create_task(write_more(database))
        seen = set()
        while not writer.done():
            answer = await lister.list_topics(asking(mode=Mode.ALL))
            number = int(str(answer.version).rpartition(":")[2])
            assert len(answer.topics) == 119 + number
            seen.add(number)
        await writer


@pytest.mark.parametrize("prepared", ["on", "off"])
@pytest.mark.parametrize(
    ("pattern", "properties"),
    [(None, {}), (f"{NS}/n.*", {}), (".*n.*7.*", {}), (None, {"k": "v"})],
    ids=["namespace", "range", "substring", "properties"],
)
@pytest.mark.parametrize("page", [10, 1000], ids=["pages", "page"])
async def test_rows_that_are_replaced_at_once_are_never_missing(
    database: Database,
    monkeypatch: pytest.MonkeyPatch,
    page: int,
    pattern: str | None,
    properties: dict[str, str],
    prepared: str,
) -> None:
    monkeypatch.setattr(statements, "PAGE_NAMES", page)
    monkeypatch.setattr(pages, "PAGE_NAMES", page)
    # Whatever the database's default isolation level is.
    database.sql(f"ALTER DATABASE {database.name} SET default_transaction_isolation = 'repeatable read'")
    await fill(database, NS, [("persistent", f"n{index:03d}", {"k": "v"}) for index in range(60)])
    feeder, watching = await database.connect(), await database.connect()
    async with opened_lister(database, property_keys=["k"], prepared_statements=prepared) as lister:
        lister.trigrams = True
        asked = asking(pattern, properties=properties)
        wanted = names(await lister.list_topics(asked))
        async with feeder.transaction(isolation="read_committed"):
            kept = await feeder.fetch("SELECT local_name FROM broker_core.topics")
            await feeder.execute("TRUNCATE broker_core.topics")
            await feeder.executemany(
                'INSERT INTO broker_core.topics (namespace, local_name, properties) VALUES ($1, $2, \'{"k": "v"}\')',
                [(NS, row[0]) for row in kept],
            )
            waiting = asyncio.create_task(lister.list_topics(asked))
            await eventually(lambda: waits_for_a_lock(watching))
        answer = await waiting
        assert names(answer) == wanted != []
        assert str(answer.version).endswith(":2")
    await feeder.close()
    await watching.close()


async def waits_for_a_lock(connection: Any) -> bool:
    """Whether a reader of this database waits for a lock."""
    return bool(
        await connection.fetchval(
            "SELECT EXISTS (SELECT FROM pg_locks l JOIN pg_database d ON d.oid = l.database "
            "WHERE d.datname = current_database() AND l.mode = 'AccessShareLock' AND NOT l.granted)"
        )
    )


async def test_no_row_of_a_range_is_read_twice(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(statements, "PAGE_NAMES", 10)
    monkeypatch.setattr(pages, "PAGE_NAMES", 10)
    # First more names of one domain, then both in turn, then the other domain.
    rows: list[Row] = [("persistent", "n000", {}), ("non-persistent", "n999-partition-0", {})]
    rows += [("non-persistent", f"n{index:03d}", {}) for index in range(1, 50)]
    rows += [
        (domain, f"n{index:03d}-partition-{part}", {})
        for index in range(50, 70)
        for part in range(3)
        for domain in ("persistent", "non-persistent")
    ]
    await fill(database, NS, rows)
    async with opened_lister(database) as lister:
        for pattern in (None, f"{NS}/n.*", f"{NS}/(?:n0|n9).*"):
            request = asking(pattern, mode=Mode.ALL)
            listed = await lister.list_topics(request)
            assert sorted(names(listed)) == sorted(local for _, local, _ in rows)
            assert await rows_of(lister, request) == len(rows)


async def write_more(database: Database) -> None:
    async with database.connected() as connection:
        for index in range(25):
            await connection.execute(
                "INSERT INTO broker_core.topics (namespace, domain, local_name) VALUES ($1, 'persistent', $2)",
                NS,
                f"more{index}",
            )


async def test_memory_is_reserved_before_it_is_used(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(statements, "PAGE_NAMES", 1000)
    monkeypatch.setattr(pages, "PAGE_NAMES", 1000)
    monkeypatch.setattr(lister_of_topics, "_FIRST_PAGE", 1000)  # bytes: the first page does not fit
    monkeypatch.setattr(pages, "_SEARCH_PAGE", 1000)  # nor do those that follow
    database.sql(
        "INSERT INTO broker_core.topics (namespace, local_name) "
        "SELECT 'acme/orders', 'topic-' || repeat('x', 150) || g FROM generate_series(1, 5000) g"
    )
    reserved: list[int] = []

    async def reserve(size: int) -> None:
        reserved.append(size)

    async with opened_lister(database) as lister:
        answer = await lister.list_topics(asking(reserve_bytes=reserve))
        assert len(answer.topics) == 5_000
        assert answer.owned
        assert reserved == sorted(reserved)
        assert reserved[-1] >= answer.topics.column().nbytes  # type: ignore[union-attr]


async def test_no_connection_is_held_while_a_request_waits_for_memory(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(statements, "PAGE_NAMES", 100)
    monkeypatch.setattr(pages, "PAGE_NAMES", 100)
    monkeypatch.setattr(pages, "_SEARCH_PAGE", 8 * 1024 * 1024)
    await fill(database, NS, plain(*(f"n{index}" for index in range(1000))))
    granted = asyncio.Event()
    asked: list[int] = []

    async def reserve(size: int) -> None:
        asked.append(size)
        if len(asked) > 1:
            await granted.wait()

    async with opened_lister(database, pool_max=1) as lister:
        waiting = asyncio.create_task(lister.list_topics(asking(reserve_bytes=reserve)))
        await eventually(lambda: len(asked) > 1)
        # The only connection is free, so other listings are answered meanwhile.
        for _ in range(3):
            assert names(await lister.list_topics(asking(f"{NS}/n7"))) == ["n7"]
        assert not waiting.done()
        granted.set()
        assert len((await waiting).topics) == 1000

        granted.clear()
        asked.clear()
        given_up = asyncio.create_task(lister.list_topics(asking(reserve_bytes=reserve)))
        await eventually(lambda: len(asked) > 1)
        given_up.cancel()
        with pytest.raises(asyncio.CancelledError):
            await given_up


async def test_a_listing_that_is_given_up_ends_at_the_server(database: Database) -> None:
    await fill(database, NS, plain("a"))
    async with opened_lister(database, pool_max=1, statement_timeout="60s") as lister:
        assert names(await lister.list_topics(asking())) == ["a"]
        blocker, watcher = await database.connect(), await database.connect()
        transaction = blocker.transaction()
        await transaction.start()
        await blocker.execute("LOCK TABLE broker_core.topics IN ACCESS EXCLUSIVE MODE")
        listing = asyncio.create_task(lister.list_topics(asking(f"{NS}/a.*")))
        running = (
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND state = 'active' "
            "AND query LIKE '%string_agg%' AND pid <> pg_backend_pid()"
        )

        async def at_work(count: int) -> bool:
            return bool(await watcher.fetchval(running) == count)

        await eventually(lambda: at_work(1))
        listing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await listing
        await eventually(lambda: at_work(0))
        await transaction.rollback()
        await blocker.close()
        await watcher.close()
        assert names(await lister.list_topics(asking())) == ["a"]


async def test_a_failure_is_no_listing(database: Database) -> None:
    await fill(database, NS, plain("a"))
    async with opened_lister(database) as lister:
        database.sql("ALTER TABLE broker_core.topics RENAME TO hidden")
        with pytest.raises(ListingFailed) as failed:
            await lister.list_topics(asking())
        assert failed.value.reason == "schema"


@pytest.mark.parametrize(
    "hostile",
    [
        "'; DROP TABLE broker_core.topics; --",
        '"; SELECT 1',
        "$1",
        "%s",
        "a' OR '1'='1",
        "\\'",
        "$$x$$",
        "{0}",
    ],
    ids=range(8),
)
async def test_what_comes_from_outside_is_only_data(database: Database, hostile: str) -> None:
    name = hostile.replace("/", "")
    await fill(database, NS, [("persistent", name, {"k": hostile}), ("persistent", "other", {"k": "v"})])
    async with opened_lister(database, property_keys=["k"]) as lister:
        escaped = re2.escape(name)
        for trigrams in (False, True):
            lister.trigrams = trigrams
            for pattern in (
                f"{NS}/{escaped}",
                f"{NS}/{escaped}.*",
                f".*{escaped}.*",
                f"{NS}/({escaped}|zz).*",
            ):
                assert names(await lister.list_topics(asking(pattern))) == [name]
        assert names(await lister.list_topics(asking(properties={"k": hostile}))) == [name]


def question(pattern: str | None = None, **properties: str) -> _QuestionKey:
    return NamespaceName.parse("t/n"), Mode.ALL, pattern, tuple(properties.items())


def test_a_remembered_question_counts_as_much_as_its_texts_may_take() -> None:
    plain = _key_bytes(question())
    assert 0 < plain < 1000
    assert _key_bytes(question("x" * 100)) == plain + 400
    assert _key_bytes(question(k="value")) == plain + 24

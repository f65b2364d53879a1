"""287 hostile questions with the answers of a real broker, asked of names in the database."""

from __future__ import annotations

from typing import Any

from broker_core.errors import ServerError
from broker_core.listing.listing_hash import topics_hash
from broker_core.names import Mode
from broker_core_postgres.plugin import PostgresPlugin
from tests.postgres.listing.lister_setup import QUIET, fill
from tests.support.postgres_server import Database
from tests.support.pulsar_serving import serving
from tests.support.raw_client import Refused
from tests.support.vectors import pattern_vectors


async def test_no_difference(database: Database) -> None:
    vectors = pattern_vectors()
    namespace, cases = vectors["namespace"], vectors["cases"]
    assert len(cases) == 287
    names = vectors["stored_names"]
    assert len(names) >= 91
    await fill(database, namespace, [("persistent", name, {}) for name in names])
    everything = cases[0]["topics"]
    differences: list[Any] = []
    table = {"dsn": database.dsn, "deadline": "25s"}
    async with (
        serving(plugins={"postgres": PostgresPlugin()}, tables={"postgres": table}, options=QUIET) as s,
        await s.client() as client,
    ):
        for number, case in enumerate(cases):
            pattern, mode = case["topics_pattern"], Mode[case["mode"]]
            # RE2 refuses the pattern; a broker uses another engine, here the client filters.
            listed = case["topics"] if case["re2"] else [] if mode is Mode.NON_PERSISTENT else everything
            full = sorted(f"persistent://{namespace}/{name}" for name in listed)
            wanted = (case["filtered"] if case["re2"] else False, topics_hash(full), full)
            try:
                answer = await client.ask(namespace, mode.value, pattern=pattern)
            except Refused as refused:
                if case["re2"] and "\\C" not in (pattern or ""):
                    differences.append((pattern, case["mode"], str(refused)))
                assert refused.code is ServerError.MetadataError  # noqa: PT017
                continue
            if case["re2"]:
                assert wanted[1] == case["topics_hash"], case
            got = (answer.filtered, answer.topics_hash, sorted(answer.topics))
            if got != wanted:
                differences.append((pattern, case["mode"], got[:2], wanted[:2]))
            if number % 4 == 0:
                unchanged = await client.ask(
                    namespace, mode.value, pattern=pattern, topics_hash=answer.topics_hash
                )
                assert not unchanged.changed, case
    assert differences == []

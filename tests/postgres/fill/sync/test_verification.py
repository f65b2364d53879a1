from __future__ import annotations

from typing import Any

import pytest

from broker_core.plugin_cli import Deletions, MassDeletion
from broker_core_postgres.fill.sync.differences import Difference
from broker_core_postgres.fill.sync.mirror import Mirror
from broker_core_postgres.fill.sync.verification import VerifyReport, verify
from tests.postgres.fill.sync.mirror_setup import listed, source_of
from tests.support.admin_server import AdminServer


async def check(
    connection: Any, server: AdminServer, fix: Deletions | None = None
) -> tuple[VerifyReport, dict[str, str]]:
    found: list[Difference] = []
    async with (
        source_of(server) as source,
        Mirror.read(connection, source, writing=fix is not None) as mirror,
    ):
        verdict = await verify(mirror, found.append, fix=fix)
    return verdict, {difference.topic: difference.kind for difference in found}


async def test_every_planted_difference_is_found_and_only_these(connection: Any) -> None:
    async with AdminServer() as server:
        server.namespace(
            "a/b", [f"topic-{number}" for number in range(50)] + ["p-partition-0", "p-partition-1"]
        )
        server.partitioned["a/b", "persistent"] = ["p"]
        verdict, _ = await check(connection, server, Deletions())
        assert verdict.fixed is not None
        verdict, found = await check(connection, server)
        assert (verdict.equal, found) == (True, {})

        await connection.execute(
            "DELETE FROM broker_core.topics WHERE local_name IN ('topic-1', 'p-partition-1')"
        )
        await connection.execute(
            "INSERT INTO broker_core.topics (namespace, local_name) VALUES ('a/b', 'planted')"
        )
        await connection.execute(
            "UPDATE broker_core.topics SET properties = '{\"k\": \"1\"}' WHERE local_name = 'topic-2'"
        )
        server.topics["a/b", "persistent"].remove("topic-3")
        server.topics["a/b", "persistent"].append("topic-50")
        server.properties["persistent://a/b/topic-4"] = {"k": "2"}
        verdict, found = await check(connection, server)
        prefix = "persistent://a/b/"
        assert found == {
            f"{prefix}topic-1": "missing",
            f"{prefix}topic-50": "missing",
            f"{prefix}planted": "extra",
            f"{prefix}topic-3": "extra",
            f"{prefix}topic-2": "different",
            f"{prefix}topic-4": "different",
            f"{prefix}p": "different",
        }
        assert (verdict.missing, verdict.extra, verdict.different, verdict.equal) == (2, 2, 3, False)

        with pytest.raises(MassDeletion):
            await check(connection, server, Deletions(most=1))
        fixed, again = await check(connection, server, Deletions())
        assert again == found
        assert fixed.equal
        verdict, found = await check(connection, server)
        assert (verdict.equal, found) == (True, {})
        assert (await listed(connection))[f"{prefix}topic-4"] == {"k": "2"}

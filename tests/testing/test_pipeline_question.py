"""Questions to the pipeline itself."""

from __future__ import annotations

import pytest

from broker_core import ListingRequest, Page, Position, TopicListingResult, hookimpl
from broker_core.errors import ListingFailed
from broker_core.testing import serve

PREFIX = "persistent://public/default/"


class Echo:
    """Lists one topic that names its asker."""

    @hookimpl
    async def broker_core_list_topics(self, request: ListingRequest) -> TopicListingResult | None:
        asker = request.asker
        if asker.role is None:
            return None
        name = f"{asker.role}-{asker.host}-{asker.client_version}-{asker.transport}"
        return TopicListingResult.success([f"{PREFIX}{name}"])


async def test_the_answer_and_who_gave_it() -> None:
    async with serve({"echo": Echo()}, topics=[PREFIX + "a", PREFIX + "b"]) as server:
        answer = await server.ask("public/default", pattern=".*/a")
        assert (answer.topics, answer.lister, answer.filtered) == ([PREFIX + "a"], "catalog", True)
        assert (len(answer), answer.stale_seconds) == (1, None)
        again = await server.ask("public/default", pattern=".*/a", topics_hash=answer.topics_hash)
        assert (again.changed, again.topics, again.topics_hash) == (False, [], answer.topics_hash)
        other = await server.ask(
            "public/default", role="eve", address="203.0.113.7:1", client_version="v", mode="all"
        )
        assert (other.topics, other.lister) == ([PREFIX + "eve-203.0.113.7-v-testing"], "echo")


async def test_what_fails_raises() -> None:
    async with serve() as server:
        with pytest.raises(ListingFailed, match="missing"):
            await server.ask("public/default", pattern="(")
        with pytest.raises(ValueError, match="Invalid mode 'none'"):
            await server.ask("public/default", mode="none")


async def test_it_leaves_no_memory_behind() -> None:
    async with serve(topics=[PREFIX + f"topic-{n}" for n in range(100)]) as server:
        await server.ask("public/default", pattern=".*[0-4]")
        assert server.broker.pipeline.permits.heap.available == server.broker.pipeline.permits.heap.maximum


async def test_pages_and_details() -> None:
    async with serve(topics=[PREFIX + name for name in ("b", "a")]) as server:
        await server.create(PREFIX + "c", partitions=2)
        first = await server.ask("public/default", page=Page(None, 3), wants={"partitions"})
        assert first.topics == [PREFIX + name for name in ("a", "b", "c-partition-0")]
        assert first.next == Position(PREFIX + "c", 1)
        assert first.details is not None
        assert [row["partitions"] for row in first.details.to_pylist()] == [0, 0, 2]
        last = await server.ask("public/default", page=Page(first.next, 3))
        assert (last.topics, last.next, last.details) == ([PREFIX + "c-partition-1"], None, None)
        with pytest.raises(ValueError, match="colour"):
            await server.ask("public/default", wants={"colour"})


async def test_a_wrong_argument_is_named() -> None:
    async with serve() as server:
        with pytest.raises(TypeError, match="wants must be a set of words, not str"):
            await server.ask("t/n", wants="partitions")
        with pytest.raises(TypeError, match=r"page must be a .* or None, not int"):
            await server.ask("t/n", page=5)  # type: ignore[arg-type]

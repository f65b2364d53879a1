"""The shrink guard for answers of plugins: what is held, and what a change log says is meant."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from broker_core import TopicListingResult, TopicName, hookimpl
from broker_core.catalog import CatalogLogReader, SqliteCatalog
from broker_core.errors import ListingFailed
from tests.support.api_serving import NAMESPACE, api_served


class Holder:
    """A plugin that lists what a catalogue of its own has, and offers its log; ``shown`` cuts its listings."""

    def __init__(self, path: Path) -> None:
        self.catalog = SqliteCatalog(path, create=True)
        self.shown: int | None = None
        self.log: Any = None

    @hookimpl
    async def broker_core_change_log(self) -> Any:
        self.log = CatalogLogReader(self.catalog)
        self.log.name = "holder"
        return self.log

    @hookimpl
    def broker_core_depends_on(self) -> list[str]:
        return []

    @hookimpl
    def broker_core_list_topics(self, request: Any) -> TopicListingResult:
        with self.catalog.state() as state:
            names = state.names(request.namespace, "persistent").names.to_pylist()
        listed = [f"persistent://{request.namespace}/{name}" for name in sorted(names)]
        return TopicListingResult.success(listed[: self.shown])

    @hookimpl
    async def broker_core_shutdown(self) -> None:
        self.log.close()
        self.catalog.close()


async def test_an_answer_of_a_plugin_that_lost_many_topics_is_held(tmp_path: Path) -> None:
    """Unless its change log tells each of the deletions."""
    plugin = Holder(tmp_path / "holder.sqlite")
    names = [TopicName.parse(f"persistent://public/default/topic-{index}") for index in range(40)]
    for name in names:
        plugin.catalog.create(name)
    async with api_served(tmp_path, plugins={"holder": plugin}) as served:
        listing = f"{NAMESPACE}/topics"

        async def count() -> int:
            said = await served.ask(listing)
            return len(said.json["items"]) if said.status == 200 else -said.status

        assert await count() == 40
        for name in names[:30]:
            plugin.catalog.delete(name)
        assert await count() == 10, "its log tells them"
        plugin.shown = 2
        assert await count() == -502
        (held,) = (await served.ask("/v1/held-listings")).json["items"]
        assert (held["question"], held["missing"]) == ("PERSISTENT for all, by holder", 8)
        plugin.shown = None
        assert await count() == 10
        plugin.shown = 2
        assert (await served.ask(f"{NAMESPACE}/held-listings/accept", "POST")).json == {"accepted": 0}
        assert await count() == 2


async def test_a_log_that_cannot_tell_makes_nothing_meant(tmp_path: Path) -> None:
    plugin = Holder(tmp_path / "holder.sqlite")
    names = [TopicName.parse(f"persistent://public/default/topic-{index}") for index in range(40)]
    for name in names:
        plugin.catalog.create(name)

    async def changes(*_arguments: Any) -> Any:
        raise ListingFailed("the log is away")

    async with api_served(tmp_path, plugins={"holder": plugin}) as served:
        assert (await served.ask(f"{NAMESPACE}/topics")).status == 200
        for name in names[:30]:
            plugin.catalog.delete(name)
        known, plugin.log.changes = plugin.log.changes, changes
        assert (await served.ask(f"{NAMESPACE}/topics")).status == 502
        matching = {"pattern": "public/default/topic-1.*"}
        assert (await served.ask(f"{NAMESPACE}/topics", params=matching)).status == 502, "of the whole"
        plugin.log.changes = known
        assert (await served.ask(f"{NAMESPACE}/topics")).status == 200

"""Which questions a watch can have, and what `explain` says of the others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from broker_core import TopicListingResult
from broker_core.access.asker import Asker
from broker_core.broker.opened_core import opened_pipeline
from broker_core.catalog import SqliteCatalog
from broker_core.names import Mode, NamespaceName, TopicName
from broker_core.patterns import compile_pattern
from broker_core.pipeline import explain, unfit_for_watches
from broker_core.plugin_api.listing_request import ListingRequest
from broker_core.settings import Settings
from tests.support.plugins import PluginOf

NAMESPACE = NamespaceName("a", "b")
TOPIC = TopicName("persistent", NAMESPACE, "x")


def passes() -> TopicListingResult:
    return TopicListingResult.pass_through()


async def refused(
    folder: Path, plugins: dict[str, object] | None = None, pattern: str | None = None, **tables: Any
) -> str | None:
    """What explain says of a watch."""
    mode = tables.pop("mode", Mode.PERSISTENT)
    SqliteCatalog(folder / "c.sqlite").close()
    settings = Settings.model_validate({"catalog": {"path": folder / "c.sqlite"}, **tables})
    async with opened_pipeline(settings, plugins=plugins) as pipeline:
        longest = pipeline.options.patterns.max_length
        compiled = None if pattern is None else compile_pattern(pattern, max_length=longest)
        report = await explain(pipeline, ListingRequest(NAMESPACE, mode, pattern=compiled))
        said: str | None = report["watch_refused"]
        return said


async def test_only_while_properties_select_topics_of_the_namespace(tmp_path: Path) -> None:
    settings = Settings.model_validate(
        {"catalog": {"path": tmp_path / "c.sqlite", "property_keys": ["region"]}}
    )
    with SqliteCatalog(tmp_path / "c.sqlite") as catalog:
        catalog.create(TOPIC)
        async with opened_pipeline(settings) as pipeline:
            assert await unfit_for_watches(pipeline, NAMESPACE, Asker()) is None
            catalog.set_properties(TOPIC, {"other": "1"})
            assert await unfit_for_watches(pipeline, NAMESPACE, Asker()) is None
            catalog.set_properties(TOPIC, {"region": "eu"})
            reason = await unfit_for_watches(pipeline, NAMESPACE, Asker())
            assert reason is not None
            assert "catalog.property_keys" in reason
            assert await unfit_for_watches(pipeline, NamespaceName("a", "other"), Asker()) is None
            catalog.set_properties(TOPIC, {})
            assert await unfit_for_watches(pipeline, NAMESPACE, Asker()) is None


async def test_a_plugin_that_declares_nothing_is_named_with_what_to_declare(tmp_path: Path) -> None:
    said = await refused(tmp_path, {"lister": PluginOf(list_topics=passes)})
    assert said is not None
    assert "'lister' may declare what answers do depend on: broker_core_depends_on" in said


async def test_each_plugin_that_declares_properties_is_named_once(tmp_path: Path) -> None:
    def plugin() -> PluginOf:
        return PluginOf(
            list_topics=passes, visible=lambda topics: None, depends_on=lambda: ("property:region",)
        )

    said = await refused(tmp_path, {"one": plugin(), "two": plugin()})
    assert said == (
        "answers of 'one', 'two' depend on the properties of the request, which a watch does not have"
    )


async def test_what_nothing_stands_in_the_way_of(tmp_path: Path) -> None:
    assert await refused(tmp_path) is None
    plugin = PluginOf(list_topics=passes, depends_on=lambda: ())
    assert await refused(tmp_path, {"lister": plugin}, "a/b/x.*") is None


@pytest.mark.parametrize(
    ("asked", "text"),
    [
        ({"mode": Mode.NON_PERSISTENT}, "a watch is of persistent topics"),
        ({"pattern": "a/b/(?!x).*"}, "invalid perl operator"),
        ({"patterns": {"evaluate": False}}, "Evaluating subscription patterns is disabled."),
    ],
)
async def test_a_question_that_no_watch_has(tmp_path: Path, asked: dict[str, Any], text: str) -> None:
    said = await refused(tmp_path, **asked)
    assert said is not None
    assert text in said

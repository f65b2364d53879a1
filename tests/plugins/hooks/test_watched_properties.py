from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from broker_core.plugins.hooks.masks import WatchedProperties
from tests.support.plugins import PluginOf, loaded


def visible(topics: object) -> None:
    """A mask."""


@pytest.mark.parametrize(
    ("words", "depends"),
    [(set(), False), ({"principal"}, False), ({"properties"}, True), ({"property:team"}, True)],
)
def test_what_a_plugin_says_counts(words: set[str], depends: bool) -> None:
    plugin = loaded(PluginOf(visible=visible, depends_on=lambda: words))
    watch = WatchedProperties(plugin)
    assert watch.depends is depends
    watch.properties.get("team")
    assert watch.depends is depends


@pytest.mark.parametrize(
    "read",
    [
        lambda properties: properties.get("team"),
        lambda properties: "team" in properties,
        bool,
        len,
        dict,
        list,
        lambda properties: frozenset(properties.items()),
        lambda properties: properties == {},
    ],
)
def test_of_a_plugin_that_says_nothing_it_is_seen(read: Callable[[Mapping[str, str]], Any]) -> None:
    watch = WatchedProperties(loaded(PluginOf(visible=visible)))
    assert not watch.depends
    read(watch.properties)
    assert watch.depends
    assert not watch.properties

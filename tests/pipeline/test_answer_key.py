"""A key holds what the plugin depends on, and nothing else; by default all there is."""

from __future__ import annotations

import pytest

from broker_core import ListingRequest
from broker_core.listing_request import Asker
from broker_core.names import Mode, NamespaceName
from broker_core.patterns import compile_pattern
from broker_core.pipeline.answer_key import answer_key
from broker_core.plugins import LoadedPlugin
from tests.support.plugins import PluginOf, loaded

NAMESPACE = NamespaceName("t", "n")
BASE = ListingRequest(NAMESPACE)
VARIED = {
    "pattern": ListingRequest(NAMESPACE, pattern=compile_pattern("t/n/a.*")),
    "properties": ListingRequest(NAMESPACE, properties={"region": "eu"}),
    "principal": ListingRequest(NAMESPACE, asker=Asker(role="me")),
    "client": ListingRequest(NAMESPACE, asker=Asker(client_version="x")),
    "address": ListingRequest(NAMESPACE, asker=Asker(remote_address="192.0.2.1:7")),
}


def depending(*on: str) -> LoadedPlugin:
    return loaded(PluginOf(depends_on=lambda: set(on), list_topics=lambda: None))


@pytest.mark.parametrize("what", VARIED)
def test_a_key_differs_where_the_plugin_depends_on_it(what: str) -> None:
    plain = loaded(PluginOf(list_topics=lambda: None))
    for plugin, differs in ((plain, True), (depending(what), True), (depending(*{*VARIED} - {what}), False)):
        assert (answer_key(plugin, VARIED[what]) != answer_key(plugin, BASE)) is differs
    assert answer_key(plain, BASE) == answer_key(plain, ListingRequest(NAMESPACE, topics_hash="00000000"))


def test_a_filtered_answer_depends_on_the_pattern_whatever_the_plugin_says() -> None:
    plugin, pattern = depending(), VARIED["pattern"]
    assert answer_key(plugin, pattern, filtered=True) != answer_key(plugin, BASE, filtered=True)
    assert answer_key(plugin, pattern, filtered=True).text == 2 * len("t/n/a.*")


def test_namespaces_and_modes_never_mix() -> None:
    plugin = depending()
    keys = {
        answer_key(plugin, ListingRequest(namespace, mode))
        for namespace in (NAMESPACE, NamespaceName("t", "other"))
        for mode in Mode
    }
    assert len(keys) == 6


def test_the_text_of_the_client_is_counted() -> None:
    long = ListingRequest(
        NAMESPACE, pattern=compile_pattern("t/n/" + "a" * 996), properties={"k" * 100: "v" * 900}
    )
    assert answer_key(depending(), long).text == 0
    assert answer_key(depending("pattern"), long).text == 2000
    assert answer_key(depending("pattern", "properties"), long).text == 4000


def test_a_client_is_the_same_after_a_reconnect() -> None:
    plugin = depending("address")

    def of(address: str) -> object:
        return answer_key(plugin, ListingRequest(NAMESPACE, asker=Asker(remote_address=address)))

    assert of("192.0.2.7:40001") == of("192.0.2.7:51234") != of("192.0.2.8:40001")
    assert of("[2001:db8::7]:40001") == of("[2001:db8::7]:51234") != of("[2001:db8::8]:40001")

"""The words of dependencies, their fields, and the cache keys made of them."""

from __future__ import annotations

from dataclasses import fields

import pytest

from broker_core import ListingRequest, Mode
from broker_core.access.asker import Asker
from broker_core.names import NamespaceName
from broker_core.patterns import compile_pattern
from broker_core.plugin_api.depends_on import EVERYTHING, WORDS, checked_words, key_of, undeclared, word_of

NAMESPACE = NamespaceName("t", "n")
BASE = ListingRequest(NAMESPACE)


def test_every_field_has_a_word_or_a_reason_to_have_none() -> None:
    """A field that is added to a request and forgotten in the table would be in no key."""
    paths = {field.name for field in fields(ListingRequest)} - {"asker"}
    paths |= {f"asker.{field.name}" for field in fields(Asker)}
    in_every_key = {"namespace", "mode"}
    shape_no_answer = {"topics_hash", "deadline", "reserve_bytes", "services", "asker.connection"}
    shape_no_answer |= {"wants", "page"}  # what is made of an answer, once it is there
    assert {path for path in paths if word_of(path) is None} <= in_every_key | shape_no_answer
    assert {path for word in WORDS.values() for path in word} <= paths | {"topics_pattern", "asker.host"}


@pytest.mark.parametrize(
    ("word", "request_"),
    [
        ("pattern", ListingRequest(NAMESPACE, pattern=compile_pattern("t/n/a.*"))),
        ("properties", ListingRequest(NAMESPACE, properties={"region": "eu"})),
        ("property:region", ListingRequest(NAMESPACE, properties={"region": "eu"})),
        ("principal", ListingRequest(NAMESPACE, asker=Asker(role="me"))),
        ("principal", ListingRequest(NAMESPACE, asker=Asker(original_principal="you"))),
        ("client", ListingRequest(NAMESPACE, asker=Asker(client_version="x"))),
        ("client", ListingRequest(NAMESPACE, asker=Asker(protocol_version=21))),
        ("client", ListingRequest(NAMESPACE, asker=Asker(transport="http"))),
        ("address", ListingRequest(NAMESPACE, asker=Asker(remote_address="192.0.2.7:1"))),
    ],
)
def test_a_key_has_the_fields_of_its_words_alone(word: str, request_: ListingRequest) -> None:
    assert key_of(request_, {word}) != key_of(BASE, {word})
    others = EVERYTHING - {word} - ({"properties"} if word.startswith("property:") else set())
    assert key_of(request_, others) == key_of(BASE, others)


def test_one_property_is_one_word() -> None:
    def of(*words: str, **properties: str) -> object:
        return key_of(ListingRequest(NAMESPACE, properties=properties), words)

    assert of("property:region", region="eu", team="a") == of("property:region", region="eu", team="b")
    assert of("property:region", region="eu") != of("property:region", region="us")
    assert of("property:region") != of("property:region", region="")
    assert of("property:region", "property:team", region="x") != of(
        "property:region", "property:team", team="x"
    )
    assert of("properties", "property:region", team="a") != of("properties", "property:region", team="b")


def test_a_port_is_in_no_key() -> None:
    def of(address: str) -> object:
        return key_of(ListingRequest(NAMESPACE, asker=Asker(remote_address=address)), {"address"})

    assert of("192.0.2.7:1") == of("192.0.2.7:2") != of("192.0.2.8:1")


def test_namespaces_modes_and_more_are_in_every_key() -> None:
    keys = {
        key_of(ListingRequest(namespace, mode), (), plugin)
        for namespace in (NAMESPACE, NamespaceName("t", "m"))
        for mode in Mode
        for plugin in ("a", "b")
    }
    assert len(keys) == 12


def test_words_are_checked() -> None:
    assert checked_words(["pattern", "property:a"]) == {"pattern", "property:a"}
    for wrong in ("patern", "", "property:", "PATTERN", 1, None):
        with pytest.raises(ValueError, match="the words are 'pattern', 'properties'"):
            checked_words(["pattern", wrong])


def test_what_was_used_and_not_declared() -> None:
    assert undeclared({"pattern", "principal"}, {"pattern"}) == {"principal"}
    assert undeclared({"property:a"}, {"properties"}) == frozenset()
    assert undeclared({"properties"}, {"property:a"}) == {"properties"}
    assert undeclared(EVERYTHING, EVERYTHING) == frozenset()


@pytest.mark.parametrize(
    "word", ["property: x", "property:x ", " property:x", "property: ", "pattern ", None, 7]
)
def test_blanks_around_a_word_are_a_mistake(word: object) -> None:
    """A word with blanks would name another property, and the answers for all of its values would be one."""
    with pytest.raises(ValueError, match="the words are"):
        checked_words([word])

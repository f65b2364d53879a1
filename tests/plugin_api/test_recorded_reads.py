"""A request that records which of its fields are read."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from broker_core import ListingRequest
from broker_core.access.asker import Asker
from broker_core.names import NamespaceName
from broker_core.patterns import compile_pattern
from broker_core.plugin_api.depends_on import WORDS
from broker_core.plugin_api.recorded_reads import recorded, recorded_asker

ASKER = Asker("me", "you", "192.0.2.7:40001", "client", 21, "pulsar")
REQUEST = ListingRequest(
    NamespaceName("t", "n"),
    pattern=compile_pattern("t/n/a.*"),
    properties={"region": "eu", "team": "a"},
    asker=ASKER,
)


def read(use: Callable[[ListingRequest], Any]) -> set[str]:
    told: list[str] = []
    use(recorded(REQUEST, told.append))
    return set(told)


@pytest.mark.parametrize(("word", "path"), [(word, path) for word, paths in WORDS.items() for path in paths])
def test_each_field_of_the_table_is_told_when_it_is_read(word: str, path: str) -> None:
    def use(request: ListingRequest) -> None:
        value: Any = request
        for name in path.split("."):
            value = getattr(value, name)
        if isinstance(value, Mapping):
            dict(value)

    assert word in read(use)
    assert read(use) - {word} <= {"property:region", "property:team"}


@pytest.mark.parametrize(
    ("use", "words"),
    [
        (lambda properties: properties.get("region"), {"property:region"}),
        (lambda properties: properties["team"], {"property:team"}),
        (lambda properties: "nothing" in properties, {"property:nothing"}),
        (list, {"properties"}),
        (len, {"properties"}),
        (bool, {"properties"}),
        (repr, {"properties"}),
        (lambda properties: None, set()),
    ],
)
def test_each_property_is_told(use: Callable[[Mapping[str, str]], Any], words: set[str]) -> None:
    assert read(lambda request: use(request.properties)) == words


def test_what_no_answer_depends_on_is_not_told() -> None:
    assert read(lambda r: (r.namespace, r.mode, r.topics_hash, r.deadline, r.asker.connection)) == set()


def test_it_is_the_same_request() -> None:
    request = recorded(REQUEST, lambda _: None)
    assert isinstance(request, ListingRequest)
    assert (request.topics_pattern, request.asker.host) == ("t/n/a.*", "192.0.2.7")
    assert dict(request.properties) == REQUEST.properties
    assert dataclasses.asdict(recorded_asker(ASKER, lambda _: None))["role"] == "me"
    with pytest.raises(dataclasses.FrozenInstanceError):
        request.mode = None  # type: ignore[misc, assignment]


def test_a_copy_that_a_plugin_makes_works() -> None:
    told: list[str] = []
    copy = dataclasses.replace(recorded(REQUEST, told.append), topics_hash=None)
    assert copy.topics_pattern == "t/n/a.*"
    assert copy.asker.role == "me"
    assert {"pattern", "principal"} <= set(told)


def test_to_record_what_is_recorded_reads_nothing() -> None:
    told: list[str] = []
    once = dataclasses.replace(REQUEST, asker=recorded_asker(ASKER, told.append))
    again = recorded(once, lambda _: None)
    assert told == []
    assert again.asker.host == "192.0.2.7"

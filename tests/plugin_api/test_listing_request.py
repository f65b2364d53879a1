"""A request: immutable, usable without a server, and its reservation of memory."""

from __future__ import annotations

import dataclasses
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from broker_core.access.asker import Asker
from broker_core.errors import TooManyRequests
from broker_core.listing.pages.page import Page, Position
from broker_core.names import Mode, NamespaceName
from broker_core.patterns import compile_pattern
from broker_core.plugin_api.listing_request import ListingRequest

NAMESPACE = NamespaceName.parse("public/default")


async def test_a_request_needs_nothing_but_a_namespace() -> None:
    request = ListingRequest(NAMESPACE)
    assert (request.mode, request.pattern, request.topics_pattern) == (Mode.PERSISTENT, None, None)
    assert (request.topics_hash, dict(request.properties), request.asker) == (None, {}, Asker())
    assert request.deadline == float("inf")
    assert str(request.namespace) == "public/default"
    await request.reserve(10**12)


def test_the_pattern_is_there_raw_and_compiled() -> None:
    request = ListingRequest(NAMESPACE, pattern=compile_pattern("persistent://public/default/a.*"))
    assert request.topics_pattern == "persistent://public/default/a.*"
    assert request.pattern is not None
    assert request.pattern.text == "public/default/a.*"


@pytest.mark.parametrize("field", [field.name for field in dataclasses.fields(ListingRequest)])
def test_a_request_does_not_change(field: str) -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(ListingRequest(NAMESPACE), field, None)


def test_no_properties_cannot_be_made_some() -> None:
    request = ListingRequest(NAMESPACE)
    with pytest.raises(TypeError):
        request.properties["a"] = "b"  # type: ignore[index]


async def test_reserving_asks_whoever_counts() -> None:
    asked: list[int] = []

    async def reserve(size: int) -> None:
        asked.append(size)
        if size > 100:
            raise TooManyRequests("no memory", reason="heap")

    request = ListingRequest(NAMESPACE, reserve_bytes=reserve)
    await request.reserve(7)
    with pytest.raises(TooManyRequests):
        await request.reserve(101)
    assert asked == [7, 101]
    assert "reserve" not in repr(request)
    assert request == ListingRequest(NAMESPACE)


def test_properties_do_not_change_whoever_made_the_request() -> None:
    given = {"a": "b"}
    request = ListingRequest(NAMESPACE, properties=given)
    with pytest.raises(TypeError):
        request.properties["a"] = "c"  # type: ignore[index]
    given["a"] = "d"
    assert request.properties == {"a": "b"}
    again = dataclasses.replace(request, topics_hash="0a1b2c3d")
    assert again.properties is request.properties  # what cannot change is not copied


@dataclasses.dataclass(frozen=True, slots=True)
class NewerRequest(ListingRequest):
    """A request with a field that code which copies requests has never heard of."""

    weather: str = "fine"


async def test_a_request_as_a_plugin_gets_it_has_all_fields() -> None:
    waited: list[str] = []

    def pausing(function: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        async def paused(*given: Any, **named: Any) -> Any:
            waited.append("stops")
            await function(*given, **named)
            waited.append("goes on")

        return paused

    async def reserve(size: int) -> None:
        waited.append(f"{size} bytes")

    request = NewerRequest(
        NAMESPACE,
        Mode.ALL,
        compile_pattern("public/default/a.*"),
        "0a1b2c3d",
        {"a": "b"},
        Asker(role="alice"),
        17.0,
        reserve,
        weather="rain",
    )
    paused = request.pausing(pausing)
    assert isinstance(paused, NewerRequest)
    for field in dataclasses.fields(request):
        if field.name != "reserve_bytes":
            assert getattr(paused, field.name) is getattr(request, field.name)
    await paused.reserve(5)
    assert waited == ["stops", "5 bytes", "goes on"]


async def test_without_a_broker_nobody_counts_and_nothing_is_behind() -> None:
    request = ListingRequest(NAMESPACE)
    async with request.lease(10**12) as lease:
        assert lease.size == 10**12
    with pytest.raises(RuntimeError, match="nothing behind this request"):
        _ = request.rest()
    assert request.key() == ListingRequest(NAMESPACE, topics_hash="00000000").key()
    assert request.key() != ListingRequest(NAMESPACE, properties={"a": "b"}).key()


def test_a_page_and_what_is_wanted_besides_the_names() -> None:
    plain = ListingRequest(NamespaceName("t", "n"))
    assert (plain.page, plain.wants) == (None, frozenset())
    page = Page(Position("persistent://t/n/x"), 10)
    asked = ListingRequest(NamespaceName("t", "n"), page=page, wants=frozenset({"partitions"}))
    assert (asked.page, asked.wants) == (page, frozenset({"partitions"}))
    with pytest.raises(ValueError, match="'names'"):
        ListingRequest(NamespaceName("t", "n"), wants=frozenset({"names"}))

"""The broker's services for one call of a plugin, and errors for their wrong use."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from typing import Any

import pytest

from broker_core import SAME, Asker, Listing, ListingRequest, Mode, RestAnswer
from broker_core.names import NamespaceName
from broker_core.patterns import compile_pattern
from broker_core.plugin_api.request_lease import UNCOUNTED
from broker_core.plugin_api.request_services import CALLS, RequestServices
from broker_core.plugins.call.plugin_runner import Deadline
from tests.support.eventually import eventually

NAMESPACE = NamespaceName("t", "n")
REQUEST = ListingRequest(
    NAMESPACE,
    pattern=compile_pattern("t/n/a.*"),
    properties={"region": "eu"},
    asker=Asker(role="me"),
)
ANSWER = RestAnswer(Listing.from_names("t/n", Mode.PERSISTENT, []).all(), False, None, "catalog")


class Loop:
    """Memory that is counted by the running event loop."""

    def __init__(self) -> None:
        self.loop: asyncio.AbstractEventLoop | None = asyncio.get_running_loop()

    async def grow(self, size: int) -> None: ...

    def try_grow(self, size: int) -> bool:
        return True

    def give_back(self, size: int) -> None: ...


class Made:
    def __init__(self, *words: str, listing: bool = True) -> None:
        self.asked: list[tuple[Any, Any]] = []
        self.added: list[Collection[str]] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.services = RequestServices(
            REQUEST, "p", Loop(), lambda: words, self.behind if listing else None, self.added.append
        )

    async def behind(self, pattern: Any, properties: Any) -> RestAnswer:
        self.asked.append((pattern, properties))
        await self.gate.wait()
        return ANSWER

    def as_called(self) -> RequestServices:
        return self.services.pausing(Deadline(asyncio.get_running_loop(), 5).paused)


async def test_the_fifth_call_is_refused_whoever_made_the_others() -> None:
    made = Made()
    called = made.as_called()
    answers = await asyncio.gather(*(called.rest(SAME, SAME) for _ in range(CALLS)))
    assert answers == [ANSWER] * 4
    with pytest.raises(RuntimeError, match="more than 4 times"):
        _ = called.rest(SAME, SAME)
    assert len(made.asked) == 4
    assert "more than 4 times" in str(made.services.wrong)  # though this caught it
    assert made.services.rest_requested


@pytest.mark.parametrize(
    ("pattern", "properties", "added"),
    [
        (SAME, SAME, {"pattern", "property:region", "principal"}),
        ("t/n/b.*", {"region": "us"}, {"pattern", "property:region", "principal"}),
        (None, SAME, {"property:region", "principal"}),
        (None, {}, {"principal"}),
        (SAME, {}, {"pattern", "principal"}),
    ],
)
async def test_what_the_answer_depends_on_because_of_a_call(
    pattern: Any, properties: Any, added: set[str]
) -> None:
    made = Made("property:region", "principal")
    await made.as_called().rest(pattern, properties)
    assert made.added == [added]


async def test_a_key_has_what_the_answer_of_the_same_call_depends_on() -> None:
    def key(as_pattern: Any = SAME, as_properties: Mapping[str, str] | Any = SAME, **fields: Any) -> object:
        base: dict[str, Any] = {
            "pattern": REQUEST.pattern,
            "properties": REQUEST.properties,
            "asker": REQUEST.asker,
        }
        request = ListingRequest(NAMESPACE, **base | fields)
        words = ("property:region", "principal")
        return RequestServices(request, "p", UNCOUNTED, lambda: words, None, len).key(
            as_pattern, as_properties
        )

    assert key() == key(topics_hash="00000000") == key("t/n/a.*", {"region": "eu", "team": "a"})
    assert key() != key(pattern=compile_pattern("t/n/b.*"))
    assert key(None) == key(None, pattern=compile_pattern("t/n/b.*")) != key()
    assert key(asker=Asker(role="you")) != key() == key(asker=Asker(role="me", client_version="x"))
    assert key(SAME, {}) != key()


async def test_misuse_is_told_at_once() -> None:
    made = Made()
    called = made.as_called()
    with pytest.raises(RuntimeError, match="for broker_core_list_topics only"):
        _ = Made(listing=False).as_called().rest(SAME, SAME)
    with pytest.raises(TypeError, match="pattern must be text, None or SAME, not bytes"):
        _ = called.rest(b"x", SAME)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="properties must be a mapping or SAME, not list"):
        _ = called.rest(SAME, [])  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="must be strings by string"):
        called.key(SAME, {"a": 1})  # type: ignore[dict-item]
    with pytest.raises(RuntimeError, match="async hooks: write `async def broker_core_list_topics`"):
        await asyncio.to_thread(lambda: [called.rest(SAME, SAME)])

    async def elsewhere() -> None:
        _ = called.rest(SAME, SAME)

    with pytest.raises(RuntimeError, match="is for async hooks"):
        await asyncio.to_thread(lambda: asyncio.run(elsewhere()))
    assert made.asked == []
    assert not made.services.rest_requested


async def test_what_nobody_waited_for_ends_with_the_call() -> None:
    made = Made()
    made.gate.clear()
    waiting = asyncio.create_task(made.as_called().rest(SAME, SAME))
    await eventually(lambda: made.asked)
    made.services.close()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    with pytest.raises(RuntimeError, match="came too late"):
        _ = made.as_called().rest(SAME, SAME)

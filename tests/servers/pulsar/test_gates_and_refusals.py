"""Gates and refusals of listers as clients see them: no request passes around a gate."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from broker_core import Access, Cause, ListingRequest, Refused, TopicListingResult
from broker_core.client import ServerRefused
from broker_core.errors import ListingFailed, ServerError
from broker_core.pipeline import explain
from broker_core.plugin_api.hookspecs import ListingOutcome
from broker_core.testing import Server, serve
from tests.support.eventually import eventually
from tests.support.plugins import PluginOf

TOPICS = [f"persistent://acme/orders/{number}" for number in range(5)]
X = TOPICS[0]
#: Patterns of the fast way, of one that takes a thread to compile, of one that RE2 refuses, and of none at all.
PATTERNS = [
    None,
    "acme/orders/.*",
    "acme/orders/" + "(a|b)" * 30 + "|.*",
    "acme/orders/(?=x).*",
    "(",
    "x" * 2000,
]


class Gate:
    """Refuses by ``answer``, and remembers what it was asked."""

    def __init__(self, answer: Any = None, *, is_async: bool = True) -> None:
        self.answer = answer
        self.asked: list[Access] = []

        async def later(access: Access) -> Any:
            return self.decide(access)

        self.plugin = PluginOf(authorize=later if is_async else self.decide_in_a_thread())

    def decide_in_a_thread(self) -> Any:
        def plain(access: Access) -> Any:
            return self.decide(access)

        return plain

    def decide(self, access: Access) -> Any:
        self.asked.append(access)
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer(access) if callable(self.answer) else self.answer


async def refused(asking: Any) -> ServerRefused:
    with pytest.raises(ServerRefused) as caught:
        await asking
    return caught.value


def all_commands(server: Server) -> list[Any]:
    client = server.client
    return [
        client.get_topics("acme/orders"),
        client.partitioned_metadata(X),
        client.lookup(X),
        client.get_schema(X),
    ]


@pytest.fixture(params=["standalone", "gateway"])
async def topology(request: pytest.FixtureRequest) -> AsyncIterator[dict[str, Any]]:
    """What serves behind the gate: a catalogue of its own, or other brokers."""
    if request.param == "standalone":
        yield {"topics": TOPICS}
    else:
        async with serve(topics=TOPICS) as behind:
            yield {"settings": {"upstream": {"service_url": behind.url}}}


@pytest.mark.parametrize("is_async", [True, False])
async def test_a_gate_refuses_every_command(topology: dict[str, Any], is_async: bool) -> None:
    gate = Gate(lambda access: Refused(f"no {access.action} for you"), is_async=is_async)
    async with serve({"gate": gate.plugin}, **topology) as server:
        for asking, action in zip(
            all_commands(server), ("list", "describe", "lookup", "schema"), strict=True
        ):
            failure = await refused(asking)
            assert (failure.code, failure.message) == (
                ServerError.AuthorizationError,
                f"no {action} for you",
            )
        assert [(access.action, str(access.namespace), str(access.topic)) for access in gate.asked] == [
            ("list", "acme/orders", "None"),
            ("describe", "acme/orders", X),
            ("lookup", "acme/orders", X),
            ("schema", "acme/orders", X),
        ]


@pytest.mark.parametrize("pattern", PATTERNS)
async def test_a_listing_is_refused_before_anything_else(pattern: str | None) -> None:
    gate = Gate(Refused("no"))
    async with serve({"gate": gate.plugin}, topics=TOPICS) as server:
        for _ in range(2):
            failure = await refused(server.client.get_topics("acme/orders", pattern=pattern))
            assert (failure.code, failure.message) == (ServerError.AuthorizationError, "no")
        if pattern not in ("(", PATTERNS[-1]):
            with pytest.raises(ListingFailed) as caught:
                await server.ask("acme/orders", pattern=pattern)
            assert caught.value.cause is Cause.DENIED
    assert all(access.action == "list" for access in gate.asked)


async def test_observers_metrics_and_explain_tell_of_it() -> None:
    outcomes: list[ListingOutcome] = []
    gate = Gate(Refused("no"))
    observer = PluginOf(listing_served=lambda outcome: outcomes.append(outcome))  # noqa: PLW0108
    async with serve({"gate": gate.plugin, "observer": observer}, topics=TOPICS) as server:
        await refused(server.list("acme/orders"))
        (outcome,) = await eventually(lambda: outcomes)
        assert (outcome.outcome, outcome.error, outcome.cause) == ("error", "no", Cause.DENIED)
        assert (outcome.lister, outcome.topics) == ("gate", 0)
        metrics = await server.metrics()
        name = "broker_core_listing_plugin_calls_total"
        assert metrics.value(name, plugin="gate", hook="authorize", outcome="refused") == 1
        assert metrics.value(name, plugin="gate", hook="authorize", outcome="allowed") == 0
        assert metrics.value("broker_core_listing_rejected_total", reason="gate") == 1
        assert metrics.value("broker_core_listing_errors_sent_total", reason="gate") == 1
        report = await explain(server.broker.pipeline, _request())
        assert [(step["plugin"], step["answer"]) for step in report["gates"]] == [("gate", "refused")]
        assert (report["chain"], report["cause"], report["error"]) == ([], "denied", "no")
        gate.answer = None
        report = await explain(server.broker.pipeline, _request())
        assert [(step["plugin"], step["answer"]) for step in report["gates"]] == [("gate", "allowed")]
        assert report["topics"] == len(TOPICS)


def _request() -> ListingRequest:
    from broker_core.testing import listing_request

    return listing_request("acme/orders")


# -- a lister that refuses --------------------------------------------------------------------------------------------


def lister(answer: Any) -> PluginOf:
    async def broker_core_list_topics(request: ListingRequest) -> Any:
        said = answer(request) if callable(answer) else answer
        if isinstance(said, BaseException):
            raise said
        return said

    return PluginOf(list_topics=broker_core_list_topics)


async def test_the_cause_makes_the_code() -> None:
    answer = TopicListingResult.refused("who are you?", cause=Cause.UNAUTHENTICATED)
    async with serve({"p": lister(answer)}) as server:
        assert (await refused(server.list("acme/orders"))).code is ServerError.AuthenticationError


async def test_a_gate_is_asked_for_an_answer_that_is_kept_too() -> None:
    gate, calls = Gate(), 0

    async def broker_core_list_topics() -> Any:
        nonlocal calls
        calls += 1
        return TopicListingResult.success(TOPICS)

    plugins = {
        "gate": gate.plugin,
        "p": PluginOf(list_topics=broker_core_list_topics, version=lambda: "1"),
    }
    async with serve(plugins) as server:
        for _ in range(3):
            assert len(await server.list("acme/orders")) == len(TOPICS)
        assert (calls, len(gate.asked)) == (1, 3)
        gate.answer = Refused("no")
        assert (await refused(server.list("acme/orders"))).message == "no"

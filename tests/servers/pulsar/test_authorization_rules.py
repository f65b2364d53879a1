"""The rules of ``[authorization]`` on every road of a client, the quick ones included."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any

import pytest
from structlog.testing import capture_logs

from broker_core import Refused
from broker_core.access.asker import ACTIONS, Asker
from broker_core.access.authorization import Authorization
from broker_core.client import ServerRefused
from broker_core.errors import Cause, ListingFailed, ServerError
from broker_core.listing.pages.page import Page
from broker_core.pipeline import explain
from broker_core.plugin_api.hookspecs import ListingOutcome
from broker_core.servers.pulsar.listing_job import ListingJob, SmallListingJob
from broker_core.settings import AuthorizationSettings
from broker_core.testing import Server, listing_request, serve
from broker_core.testing.metric_families import MetricFamilies
from broker_core.testing.personas import Persona
from broker_core.wire.pulsar import commands
from tests.support.eventually import eventually
from tests.support.memory_lister import MemoryLister
from tests.support.plugins import PluginOf
from tests.support.pulsar_handlers import talk

TOPICS = [f"persistent://acme/orders/{number}" for number in range(5)]
X = TOPICS[0]
RULES: dict[str, Any] = {
    "super_roles": ["admin"],
    "rules": [
        {"roles": ["lister"], "namespaces": ["acme/*"], "actions": ["list"]},
        {"roles": ["looker"], "namespaces": ["acme/*"], "actions": ["lookup"]},
    ],
}
#: Patterns of the fast way, of one that takes a thread to compile, of none at all, and of one that is wrong.
PATTERNS = [None, "acme/orders/.*", "acme/orders/" + "(a|b)" * 30 + "|.*", "(", "x" * 2000]


async def refused(asking: Any) -> ServerRefused:
    with pytest.raises(ServerRefused) as caught:
        await asking
    return caught.value


@pytest.fixture(params=["standalone", "gateway"])
async def server(request: pytest.FixtureRequest) -> AsyncIterator[Server]:
    """What serves behind the rules: a catalogue of its own, or other brokers."""
    if request.param == "standalone":
        async with serve(topics=TOPICS, settings={"authorization": RULES}) as server:
            yield server
    else:
        async with serve(topics=TOPICS) as behind:
            settings = {"upstream": {"service_url": behind.url}, "authorization": RULES}
            async with serve(settings=settings) as server:
                yield server


async def told(server: Server, role: str | None, topic: str) -> dict[str, tuple[ServerError, str] | None]:
    """The refusal of each command to a role; ``None`` if it has an answer."""
    namespace = topic.split("://")[1].rpartition("/")[0]
    client = await server._client(Persona(role))
    found: dict[str, tuple[ServerError, str] | None] = {}
    for command, asking in {
        "list": client.get_topics(namespace),
        "describe": client.partitioned_metadata(topic),
        "lookup": client.lookup(topic),
        "schema": client.get_schema(topic),
    }.items():
        try:
            await asking
            found[command] = None
        except ServerRefused as failure:
            found[command] = failure.code, failure.message
    return found


def denials(told: dict[str, tuple[ServerError, str] | None]) -> set[str]:
    return {
        command
        for command, said in told.items()
        if said is not None and said[0] is ServerError.AuthorizationError
    }


def counted(metrics: MetricFamilies, by: str) -> dict[str, float]:
    """The denials by action, without those that are 0."""
    found = {action: metrics.value("broker_core_denials_total", action=action, by=by) for action in ACTIONS}
    return {action: number for action, number in found.items() if number}


async def test_every_denial_is_counted_and_logged(server: Server) -> None:
    with capture_logs() as logs:
        await told(server, "nobody", X)
        await told(server, "looker", X)
    assert counted(await server.metrics(), "rules") == {"list": 2, "describe": 1, "lookup": 1, "schema": 1}
    assert [each["event"] for each in logs].count("denied by the rules") == 5


async def test_denials_of_the_brokers_are_counted_and_logged_as_such() -> None:
    async with (
        serve(topics=TOPICS, settings={"authorization": RULES}) as behind,
        serve(settings={"upstream": {"service_url": behind.url}}) as server,
    ):
        with capture_logs() as logs:
            everything = {"list", "describe", "lookup", "schema"}
            assert denials(await told(server, None, X)) == everything
        metrics = await server.metrics()
        assert counted(metrics, "brokers") == dict.fromkeys(everything, 1)
        assert counted(metrics, "rules") == {}
        assert metrics.value("broker_core_listing_rejected_total", reason="denied") == 1
        assert metrics.value("broker_core_listing_rejected_total", reason="upstream") == 0
        found = metrics.value("broker_core_relayed_lookups_total", command="lookup", outcome="denied")
        assert found == 1
    said = [each for each in logs if each["event"] == "denied by the brokers"]
    assert {each["action"] for each in said} == everything
    assert all("has no right to" in each["message"] for each in said)


@pytest.mark.parametrize("pattern", PATTERNS)
async def test_a_listing_is_denied_before_anything_else(server: Server, pattern: str | None) -> None:
    for _ in range(3):
        failure = await refused(server.list("acme/orders", pattern=pattern, role="looker"))
        assert failure.message == "Role 'looker' has no right to list in namespace acme/orders"


async def test_an_answer_that_is_kept_for_all_is_for_those_who_may_have_it(server: Server) -> None:
    questions: tuple[dict[str, Any], ...] = ({}, {"pattern": "acme/orders/.*"})
    for question in questions:
        for _ in range(4):
            answer = await server.list("acme/orders", role="lister", **question)
            assert sorted(answer.topics) == TOPICS
            for topics_hash in (None, answer.topics_hash, "00000000"):
                failure = await refused(
                    server.list("acme/orders", role="looker", topics_hash=topics_hash, **question)
                )
                assert failure.code is ServerError.AuthorizationError
    assert (await server.metrics()).value("broker_core_listing_rejected_total", reason="denied") == 24


async def test_pages_and_details_are_listings(server: Server) -> None:
    asked: tuple[dict[str, Any], ...] = ({"page": Page(None, 2)}, {"wants": {"partitions"}})
    for question in asked:
        await server.ask("acme/orders", role="lister", **question)
        with pytest.raises(ListingFailed) as caught:
            await server.ask("acme/orders", role="looker", **question)
        assert caught.value.cause is Cause.DENIED


async def test_gates_narrow_and_never_open() -> None:
    asked: list[str | None] = []

    async def authorize(access: Any) -> Any:
        asked.append(access.asker.role)
        return Refused("gate") if access.action == "list" and access.asker.role == "admin" else None

    plugins = {"gate": PluginOf(authorize=authorize)}
    async with serve(plugins, topics=TOPICS, settings={"authorization": RULES}) as server:
        assert (await refused(server.list("acme/orders", role="admin"))).message == "gate"
        assert sorted((await server.list("acme/orders", role="lister")).topics) == TOPICS
        assert "no right to list" in (await refused(server.list("acme/orders", role="looker"))).message
        assert asked == ["admin", "lister"], "no gate is asked about what the rules deny"
        assert counted(await server.metrics(), "gates") == {"list": 1}
        assert counted(await server.metrics(), "rules") == {"list": 1}


async def test_observers_and_explain_tell_of_it() -> None:
    outcomes: list[ListingOutcome] = []
    observer = PluginOf(listing_served=lambda outcome: outcomes.append(outcome))  # noqa: PLW0108
    async with serve({"observer": observer}, topics=TOPICS, settings={"authorization": RULES}) as server:
        await refused(server.list("acme/orders", role="looker"))
        (outcome,) = await eventually(lambda: outcomes)
        assert (outcome.outcome, outcome.cause, outcome.topics) == ("error", Cause.DENIED, 0)
        none, everything = "no rule allows it", "authorization.super_roles"
        for role, rules in (
            ("lister", ("rule 1: lister may list in acme/*", none, none, none)),
            ("admin", (everything, everything, everything, everything)),
            ("looker", (none, "rule 2: looker may lookup in acme/*", none, none)),
        ):
            report = await explain(server.broker.pipeline, listing_request("acme/orders", role=role))
            assert report["rules"] == [
                {"role": role, "action": action, "allowed": rule != none, "rule": rule}
                for action, rule in zip(("list", "lookup", "monitor", "admin"), rules, strict=True)
            ]
            assert ("error" in report) is (role == "looker")


async def test_the_quick_way_asks_the_rules_about_each_connection() -> None:
    settings = AuthorizationSettings.model_validate(RULES)
    who = {"asker": Asker("lister")}
    t = talk(
        MemoryLister([f"persistent://acme/n/{number}" for number in range(20)]),
        identify=lambda _: who["asker"],
        authorization=Authorization(settings),
    )
    t.connect()
    question = commands.get_topics(7, "acme/n")
    kinds = []
    for _ in range(3):
        job = t.say(question)
        assert isinstance(job, ListingJob | SmallListingJob)
        kinds.append(type(job))
        assert job.small_answer() is not None
        job.release()
    assert kinds[-1] is SmallListingJob
    for asker in (Asker("looker"), Asker(), Asker("lister", "looker"), Asker("lister", "")):
        who["asker"] = asker
        t = t.another_client()
        t.connect()
        job = t.say(question)
        assert isinstance(job, ListingJob)
        assert job.small_answer() is None


@pytest.mark.parametrize("where", ["standalone", "gateway"])
async def test_rules_about_topics_hold_before_a_cluster_too(where: str) -> None:
    names = ["orders", "orders-secret", "bills", "parted"]
    topics = {f"persistent://acme/orders/{name}": 2 if name == "parted" else 0 for name in names}
    every = {"roles": ["narrow"], "namespaces": ["acme/*"], "actions": ["list", "lookup"]}
    rules = [every | {"topics": ["orders*", "p?rted"]}, every | {"topics": ["*-secret"], "effect": "deny"}]
    table: dict[str, Any] = {"authorization": {"super_roles": ["admin"], "rules": rules}}
    async with AsyncExitStack() as stack:
        if where == "standalone":
            server = behind = await stack.enter_async_context(serve(settings=table))
        else:
            behind = await stack.enter_async_context(serve())
            settings: dict[str, Any] = {"upstream": {"service_url": behind.url}, **table}
            server = await stack.enter_async_context(serve(settings=settings))
        for name, partitions in topics.items():
            await behind.create(name, partitions=partitions)
        listed = (await server.list("acme/orders", role="narrow")).topics
        assert sorted(listed) == [
            "persistent://acme/orders/orders",
            "persistent://acme/orders/parted-partition-0",
            "persistent://acme/orders/parted-partition-1",
        ]
        assert len((await server.list("acme/orders", role="admin")).topics) == 5
        for name in names:
            said = await told(server, "narrow", f"persistent://acme/orders/{name}")
            denied = name not in {"orders", "parted"}
            assert denials(said) == ({"describe", "lookup", "schema"} if denied else set())
        said = await told(server, "narrow", "persistent://acme/orders/parted-partition-1")
        assert denials(said) == set()
        # What is not there is refused as what is.
        said = await told(server, "narrow", "persistent://acme/orders/never-there")
        assert denials(said) == {"describe", "lookup", "schema"}

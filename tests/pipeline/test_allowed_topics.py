"""Rules about topics on every road of a client: what each role sees is what matching name by name says."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from broker_core.access.authorization import Authorization
from broker_core.broker import Broker
from broker_core.catalog import SqliteCatalog
from broker_core.client import Basic, ServerRefused
from broker_core.client.kafka import AdminClient, Plain
from broker_core.client.kafka.kafka_errors import (
    ClusterAuthorizationException,
    TopicAuthorizationException,
    UnknownTopicOrPartitionException,
)
from broker_core.client.pulsar.lookup_session import LookupSession
from broker_core.errors import ServerError
from broker_core.names import TopicName
from broker_core.settings import AuthorizationSettings, Settings
from broker_core.wire.pulsar import CommandWatchTopicUpdate
from tests.support.htpasswd import write_htpasswd

ROLES = ("ops", "narrow", "wide", "none")
NAMESPACE = "acme/shop"
TOPICS = {f"{team}-{number}": number % 3 for team in ("orders", "bills", "x") for number in range(6)}
DENIED = "denied"
Rules = Sequence[Mapping[str, Any]]


def rule(roles: str, *topics: str, actions: str = "list", effect: str = "allow") -> dict[str, Any]:
    made: dict[str, Any] = {
        "roles": [roles],
        "namespaces": ["acme/*"],
        "actions": actions.split(),
        "effect": effect,
    }
    return made | ({"topics": list(topics)} if topics else {})


def random_rules(chance: random.Random) -> Rules:
    patterns = ["orders-*", "bills-?", "*-1", "x-3", "*", "?-*", "none*", "*-[12]", "o*s-*4"]

    def some() -> dict[str, Any]:
        topics = chance.sample(patterns, chance.randint(0, 2))
        actions = chance.choice(["list", "lookup", "admin", "list lookup", "*", "list admin"])
        effect = chance.choice(["allow", "allow", "deny"])
        return rule(chance.choice(["narrow", "wide", "w*", "*"]), *topics, actions=actions, effect=effect)

    return [some() for _ in range(chance.randint(0, 6))]


def may(rules: Rules, role: str, topic: str, *actions: str) -> bool:
    """The decision about a topic, rule by rule."""
    if role == "ops":
        return True

    def says(each: Mapping[str, Any], action: str, effect: str) -> bool:
        return (
            each["effect"] == effect
            and any(fnmatchcase(role, text) for text in each["roles"])
            and bool({action, "*"} & set(each["actions"]))
            and any(_matches(text, topic) for text in each.get("topics", ["*"]))
        )

    return any(
        any(says(each, action, "allow") for each in rules)
        and not any(says(each, action, "deny") for each in rules)
        for action in actions
    )


def _matches(pattern: str, name: str) -> bool:
    return fnmatchcase(name, pattern.replace("[", "[[]"))


@dataclass
class World:
    broker: Broker
    http: Mapping[str, aiohttp.ClientSession]
    pulsar: Mapping[str, LookupSession]
    kafka: Mapping[str, AdminClient]

    @property
    def url(self) -> str:
        assert self.broker.http_address is not None
        return "http://{}:{}".format(*self.broker.http_address)

    def use(self, rules: Rules) -> None:
        """Swap the rules, as a reload does."""
        table = AuthorizationSettings.model_validate({"super_roles": ["ops"], "rules": rules})
        self.broker.pipeline.authorization = Authorization(table, authentication=True)

    async def get(self, role: str, path: str) -> Any:
        async with self.http[role].get(self.url + path) as said:
            if said.status == 403:
                return DENIED
            return await said.json(content_type=None) if said.status < 300 else said.status


@asynccontextmanager
async def world(folder: Path, rules: Rules = ()) -> AsyncIterator[World]:
    with SqliteCatalog(folder / "topics.sqlite") as catalog:
        for name, partitions in TOPICS.items():
            catalog.create(TopicName.parse(f"persistent://{NAMESPACE}/{name}"), partitions=partitions)
    write_htpasswd(folder / "users", **dict.fromkeys(ROLES, "secret"))
    free = "127.0.0.1:0"
    settings = Settings.model_validate(
        {
            "pulsar": {"listen": free},
            "http": {"listen": free},
            "kafka": {"listen": free, "namespace": NAMESPACE, "sasl": {"mechanisms": ["PLAIN"]}},
            "catalog": {"path": folder / "topics.sqlite"},
            "authentication": {"methods": ["basic"], "basic": {"file": folder / "users"}},
            "authorization": {"super_roles": ["ops"], "rules": rules},
        }
    )
    async with Broker(settings) as broker, AsyncExitStack() as stack:
        pulsar, http, kafka = {}, {}, {}
        host, port = broker.pulsar_address
        assert broker.kafka_address is not None
        for role in ROLES:
            session = LookupSession(f"pulsar://{host}:{port}", credentials=Basic(role, "secret").credentials)
            pulsar[role] = await stack.enter_async_context(session)
            http[role] = await stack.enter_async_context(
                aiohttp.ClientSession(headers={"Authorization": aiohttp.encode_basic_auth(role, "secret")})
            )
            client = AdminClient("{}:{}".format(*broker.kafka_address), sasl=Plain(role, "secret"))
            kafka[role] = await stack.enter_async_context(client)
        yield World(broker, http, pulsar, kafka)


# -- the roads, each with what it should say


def listed_names(topics: Sequence[str]) -> list[str]:
    names = []
    for topic in topics:
        count = TOPICS[topic]
        full = f"persistent://{NAMESPACE}/{topic}"
        names += [f"{full}-partition-{number}" for number in range(count)] or [full]
    return sorted(names)


def seen(rules: Rules, role: str) -> list[str] | str:
    """The topics that a role may list, or that it may list none, whatever there is."""
    shown = [topic for topic in TOPICS if may(rules, role, topic, "list")]
    probes = [
        pattern.replace("*", filled).replace("?", "q")
        for each in rules
        for pattern in each.get("topics", ["*"])
        for filled in ("", "zq")
    ]
    possible = bool(shown) or any(may(rules, role, probe, "list") for probe in probes)
    return shown if possible else DENIED


def names_of(rules: Rules, role: str, prefix: str = "") -> list[str] | str:
    shown = seen(rules, role)
    if isinstance(shown, str):
        return shown
    return listed_names([topic for topic in shown if topic.startswith(prefix)])


async def by_pulsar(world: World, role: str, pattern: str | None) -> Any:
    try:
        answer = await world.pulsar[role].get_topics(NAMESPACE, pattern=pattern)
    except ServerRefused as error:
        return DENIED if error.code is ServerError.AuthorizationError else error
    return sorted(answer.topics)


async def listing(world: World, rules: Rules, role: str, chance: random.Random) -> None:
    prefix = chance.choice(["", "orders-", "x", "nothing"])
    pattern = f"{NAMESPACE}/{prefix}.*" if prefix else None
    assert await by_pulsar(world, role, pattern) == names_of(rules, role, prefix)


async def http_listing(world: World, rules: Rules, role: str, chance: random.Random) -> None:
    prefix = chance.choice(["", "bills-", "x"])
    query = f"?pattern={NAMESPACE}/{prefix}.*" if prefix else ""
    said = await world.get(role, f"/v1/namespaces/{NAMESPACE}/topics{query}")
    assert (said if said == DENIED else sorted(said["items"])) == names_of(rules, role, prefix)


async def http_pages(world: World, rules: Rules, role: str, chance: random.Random) -> None:
    path = f"/v1/namespaces/{NAMESPACE}/topics?limit={chance.randint(1, 5)}&count=true&detail=partitions"
    found: list[str] = []
    cursor = ""
    names = names_of(rules, role)
    while True:
        said = await world.get(role, path + cursor)
        if said == DENIED:
            assert names == DENIED
            return
        found += [item["name"] for item in said["items"]]
        assert said["total"] == len(names)
        if said["next"] is None:
            break
        cursor = f"&cursor={said['next']}"
    assert sorted(found) == names


async def admin_listing(world: World, rules: Rules, role: str, _: random.Random) -> None:
    said = await world.get(role, f"/admin/v2/persistent/{NAMESPACE}")
    assert (said if said == DENIED else sorted(said)) == names_of(rules, role)


async def namespace(world: World, rules: Rules, role: str, _: random.Random) -> None:
    said = await world.get(role, f"/v1/namespaces/{NAMESPACE}")
    names = names_of(rules, role)
    assert (said if said == DENIED else said["counts"]["all"]) == (names if names == DENIED else len(names))
    every = await world.get(role, "/v1/namespaces")
    assert [item["namespace"] for item in every["items"]] == ([] if names == DENIED else [NAMESPACE])
    for item in every["items"]:
        assert (item["counts"] is None) == (
            len(names) < len(listed_names([*TOPICS])) or _narrows(rules, role)
        )


def _narrows(rules: Rules, role: str) -> bool:
    probes = ["zq", "-1", "orders-zq", "bills-z", "none", "q-zq", "x-3", "-[12]", "os-4", "w-1", "-2"]
    return not all(may(rules, role, probe, "list") for probe in probes)


async def changes(world: World, rules: Rules, role: str, _: random.Random) -> None:
    said = await world.get(role, f"/v1/namespaces/{NAMESPACE}/changes")
    shown = seen(rules, role)
    if shown == DENIED:
        assert said == DENIED
    elif len(shown) < len(TOPICS):
        assert said == 409
    elif not _narrows(rules, role):
        assert said["changes"] == []


async def one_topic(world: World, rules: Rules, role: str, chance: random.Random) -> None:
    topic = chance.choice([*TOPICS, "none-1", "orders-1-partition-0", "x-9"])
    base = topic.removesuffix("-partition-0")
    said = await world.get(role, f"/v1/namespaces/{NAMESPACE}/topics/{topic}")
    assert (said == DENIED) == (not may(rules, role, base, "list")), (topic, said)
    assert said == DENIED or (said == 404) == (base not in TOPICS)


async def partitions(world: World, rules: Rules, role: str, chance: random.Random) -> None:
    topic = chance.choice([*TOPICS, "none-1"])
    allowed = may(rules, role, topic, "list", "lookup")
    said = await world.get(role, f"/admin/v2/persistent/{NAMESPACE}/{topic}/partitions")
    assert (said == DENIED) == (not allowed)
    try:
        count: Any = await world.pulsar[role].partitioned_metadata(f"persistent://{NAMESPACE}/{topic}")
    except ServerRefused as error:
        count = error.code
    assert (count is ServerError.AuthorizationError) == (not allowed)
    if topic in TOPICS and allowed:
        assert count == TOPICS[topic]


async def lookup(world: World, rules: Rules, role: str, chance: random.Random) -> None:
    topic = chance.choice([*TOPICS, "none-1"])
    try:
        await world.pulsar[role].lookup(f"persistent://{NAMESPACE}/{topic}")
        code = None
    except ServerRefused as error:
        code = error.code
    assert (code is ServerError.AuthorizationError) == (not may(rules, role, topic, "lookup"))


async def kafka_listing(world: World, rules: Rules, role: str, _: random.Random) -> None:
    shown = seen(rules, role)
    try:
        found: Any = sorted((await world.kafka[role].list_topics()).names())
    except (TopicAuthorizationException, ClusterAuthorizationException):
        found = DENIED
    assert found == (shown if shown == DENIED else sorted(shown))


async def kafka_topics(world: World, rules: Rules, role: str, chance: random.Random) -> None:
    names = chance.sample([*TOPICS, "none-1"], 4)
    found = await world.kafka[role].describe_topics(names)
    for name in names:
        try:
            found[name]
            said: Any = True
        except TopicAuthorizationException:
            said = DENIED
        except UnknownTopicOrPartitionException:
            said = False
        allowed = may(rules, role, name, "list", "lookup")
        assert said == ((name in TOPICS) if allowed else DENIED), name


async def change(world: World, rules: Rules, role: str, chance: random.Random) -> None:
    """One that is refused for another reason if it may be made at all."""
    topic = chance.choice([*TOPICS])
    url = f"{world.url}/v1/namespaces/{NAMESPACE}/topics/{topic}"
    async with world.http[role].put(url, json={}, headers={"If-None-Match": "*"}) as said:
        assert said.status == (412 if may(rules, role, topic, "admin") else 403)


ROADS: Sequence[Callable[[World, Rules, str, random.Random], Awaitable[None]]] = (
    listing,
    http_listing,
    http_pages,
    admin_listing,
    namespace,
    changes,
    one_topic,
    partitions,
    lookup,
    kafka_listing,
    kafka_topics,
    change,
)


@pytest.mark.parametrize("questions", [300, pytest.param(10_000, marks=pytest.mark.long)])
async def test_every_road_shows_what_matching_each_name_says(tmp_path: Path, questions: int) -> None:
    chance = random.Random(32)
    async with world(tmp_path) as served:
        rules: Rules = []
        for number in range(questions):
            if number % 12 == 0:  # a reload
                rules = random_rules(chance)
                served.use(rules)
            road, role = chance.choice(ROADS), chance.choice(ROLES)
            try:
                await road(served, rules, role, chance)
            except BaseException as error:
                error.add_note(f"question {number}, {road.__name__} of {role}, rules {rules}")
                raise


class Told:
    """The topics that a watcher gets."""

    known_hash = None

    def __init__(self) -> None:
        self.hash: asyncio.Queue[str] = asyncio.Queue()
        self.updates: asyncio.Queue[CommandWatchTopicUpdate] = asyncio.Queue()

    def began(self, topics_hash: str) -> None:
        self.hash.put_nowait(topics_hash)

    def update(self, told: CommandWatchTopicUpdate) -> None:
        self.updates.put_nowait(told)


async def test_a_watcher_sees_its_topics_alone_and_a_change_of_the_rules(tmp_path: Path) -> None:
    rules = [rule("narrow", "orders-*"), rule("wide")]
    async with world(tmp_path, rules) as served, asyncio.timeout(60):
        watchers = {role: Told() for role in ("narrow", "wide")}
        watching = [
            asyncio.create_task(served.pulsar[role].watch(NAMESPACE, f"{NAMESPACE}/.*", told))
            for role, told in watchers.items()
        ]
        for role, told in watchers.items():
            answer = await served.pulsar[role].get_topics(NAMESPACE)
            assert sorted(answer.topics) == names_of(rules, role)
            assert await told.hash.get() == answer.topics_hash
        served.use([rule("narrow", "orders-*", "bills-3"), rule("narrow", "*-1", effect="deny")])
        update = await watchers["narrow"].updates.get()
        assert list(update.new_topics) == [f"persistent://{NAMESPACE}/bills-3"]
        assert list(update.deleted_topics) == [f"persistent://{NAMESPACE}/orders-1-partition-0"]
        for task in watching:
            task.cancel()
        await asyncio.gather(*watching, return_exceptions=True)

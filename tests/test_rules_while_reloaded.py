"""Rules about topics by all roads, while their file is rewritten and reloaded.

Each answer is that of brute force, by the rules before or after, and by the new ones alone once the reload is
acknowledged.
"""

from __future__ import annotations

import asyncio
import random
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import Any, Final

import aiohttp
import pytest

from broker_core import hookimpl
from broker_core.access.asker import Access
from broker_core.broker import Broker
from broker_core.catalog import SqliteCatalog
from broker_core.client import Credentials, LookupSession, ServerRefused
from broker_core.client.kafka import AdminClient, NewTopic, OAuthBearer, TopicAuthorizationException
from broker_core.errors import ServerError
from broker_core.names import TopicName
from broker_core.settings import Settings, load_settings
from broker_core.wire.pulsar.messages.pulsar_api_pb2 import BaseCommand
from tests.support.tokens import der, rsa_key, token

ROLES: Final = ("ann", "bob", "cid", "dot")
SPACE: Final = "a/b"
_WORDS: Final = ("orders", "bills", "stock")
#: Local names, and how many partitions they have.
TOPICS: Final = {
    f"{word}-{region}-{number:02d}": number % 4
    for word in _WORDS
    for region in ("eu", "us", "é", "x")
    for number in range(9)
}
_ACTIONS: Final = ("list", "lookup", "admin")

#: Roles, namespaces, actions, whether it allows, and patterns of topics (``None``: all of them).
Rule = tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...], bool, "tuple[str, ...] | None"]
Rules = tuple[Rule, ...]


def _rules(chance: random.Random) -> Rules:
    def patterns() -> tuple[str, ...] | None:
        if chance.random() < 0.15:
            return None
        words = (
            "orders-*",
            "bills-eu-*",
            "*-us-*",
            "*-0?",
            "stock-é-0?",
            "stock-x-*",
            "bills-us-03",
            "*s-*",
            "st*",
            "none*",
        )
        return tuple(chance.sample(words, chance.randint(1, 3)))

    return tuple(
        (
            tuple(chance.sample((*ROLES, "*", "?ot"), chance.randint(1, 3))),
            tuple(chance.sample((SPACE, "a/*", "*/b", "a/c", "*"), chance.randint(1, 2))),
            tuple(chance.sample(_ACTIONS, chance.randint(1, 3))),
            chance.random() < 0.75,
            patterns(),
        )
        for _ in range(12)
    )


def _as_toml(rules: Rules) -> str:
    lines = []
    for roles, namespaces, actions, allows, topics in rules:
        lines += [
            "[[authorization.rules]]",
            *(
                f"{name} = {list(values)}".replace("'", '"')
                for name, values in (("roles", roles), ("namespaces", namespaces), ("actions", actions))
            ),
            f'effect = "{"allow" if allows else "deny"}"',
            *([] if topics is None else [f"topics = {list(topics)}".replace("'", '"')]),
        ]
    return "\n".join(lines) + "\n"


# -- brute force, which is asked the same of each topic for every answer


@cache
def _is_like(pattern: str, text: str, *, one: str = "?") -> bool:
    regex = "".join(".*" if each == "*" else "." if each == one else re.escape(each) for each in pattern)
    return re.fullmatch(regex, text, re.DOTALL) is not None


@cache
def _about(rules: Rules, role: str, action: str) -> Rules:
    return tuple(
        rule
        for rule in rules
        if any(_is_like(each, role, one="") for each in rule[0])
        and any(each == "*" or _is_like(each, SPACE, one="") for each in rule[1])
        and action in rule[2]
    )


def _may(rules: Rules, role: str, action: str, topic: str) -> bool:
    about = [
        allows
        for _, _, _, allows, topics in _about(rules, role, action)
        if topics is None or any(_is_like(each, topic) for each in topics)
    ]
    return any(about) and all(about)


def _is_known(rules: Rules, role: str, topic: str) -> bool:
    """Whether a role gets the number of partitions of a topic."""
    return _may(rules, role, "list", topic) or _may(rules, role, "lookup", topic)


def _visible(rules: Rules, role: str) -> list[str]:
    return [topic for topic in sorted(TOPICS) if _may(rules, role, "list", topic)]


def _listed(topics: list[str]) -> list[str]:
    """The names that a listing has of these topics."""
    return sorted(
        f"{topic}-partition-{number}" if number >= 0 else topic
        for topic in topics
        for number in (range(TOPICS[topic]) if TOPICS[topic] else (-1,))
    )


# -- the server and its clients


@dataclass
class Roads:
    """One role's connections."""

    role: str
    pulsar: LookupSession
    kafka: AdminClient
    http: aiohttp.ClientSession
    base: str

    async def get(self, path: str) -> tuple[int, Any]:
        async with self.http.get(f"{self.base}/v1/namespaces/{SPACE}/{path}") as answer:
            return answer.status, await answer.json()


@dataclass(eq=False)
class Question:
    """A question on its way: the rules that it may be answered by, those that come into force meanwhile too."""

    rules: list[Rules]


@dataclass
class Scene:
    file: Path
    chance: random.Random
    broker: Broker
    roads: dict[str, Roads] = field(default_factory=dict)
    in_force: list[Rules] = field(default_factory=list)
    asking: list[Question] = field(default_factory=list)
    asked: int = 0

    async def reload(self, rules: Rules) -> None:
        """Rewrite the file and reload; while that lasts answers may be by either rules."""
        how = self.chance.random()
        text = _text(rules)
        if how < 0.5:
            self.file.write_text(text, encoding="utf-8")
        else:
            part = self.file.with_suffix(".new")
            part.write_text(text, encoding="utf-8")
            part.replace(self.file)
        self.in_force.append(rules)
        for question in self.asking:
            question.rules.append(rules)
        reloaded = await self.broker.reloads.reload_all()
        assert reloaded.failed == {}
        self.in_force[:] = [rules]

    async def ask(self) -> None:
        """One random question of a random role by a random road, compared with brute force."""
        roads = self.roads[self.chance.choice(ROLES)]
        topic = self.chance.choice(list(TOPICS))
        road = self.chance.choice(_ROADS)
        question = Question(list(self.in_force))
        self.asking.append(question)
        try:
            answer = await road(roads, topic)
        finally:
            self.asking.remove(question)
        expected = [_EXPECTED[road](rules, roads.role, topic) for rules in question.rules]
        assert any(answer in each for each in expected), (road.__name__, roads.role, topic, answer, expected)
        self.asked += 1


async def _list(roads: Roads, topic: str) -> Any:
    pattern = f"persistent://{SPACE}/{topic.partition('-')[0]}-.*"
    try:
        answer = await roads.pulsar.get_topics(SPACE, pattern=pattern)
    except ServerRefused as refused:
        return "denied" if refused.code is ServerError.AuthorizationError else refused
    return sorted(name.rpartition("/")[2] for name in answer.topics)


async def _look_up(roads: Roads, topic: str) -> Any:
    command = BaseCommand(type=BaseCommand.PARTITIONED_METADATA)
    command.partitionMetadata.topic = f"persistent://{SPACE}/{topic}"
    answer = (await roads.pulsar.raw(command, timeout=30)).partitionMetadataResponse
    if answer.HasField("error"):
        assert answer.error == ServerError.AuthorizationError
        return "denied"
    return answer.partitions


def _legal(topic: str) -> str:
    """A topic whose name Kafka may have."""
    return topic.replace("é", "x")


async def _kafka_list(roads: Roads, topic: str) -> Any:
    try:
        return sorted((await roads.kafka.list_topics()).names())
    except TopicAuthorizationException:
        return "denied"


async def _kafka_describe(roads: Roads, topic: str) -> Any:
    topic = _legal(topic)
    try:
        return len((await roads.kafka.describe_topics([topic]))[topic].partitions)
    except TopicAuthorizationException:
        return "denied"


async def _kafka_create(roads: Roads, topic: str) -> Any:
    name = f"{_legal(topic)}0"
    try:
        (await roads.kafka.create_topics([NewTopic(name, 1, 1)], validate_only=True)).all()
    except TopicAuthorizationException:
        return "denied"
    return "created"


async def _http_list(roads: Roads, topic: str) -> Any:
    status, body = await roads.get("topics?limit=1000")
    return "denied" if status == 403 else sorted(name.rpartition("/")[2] for name in body["items"])


async def _http_topic(roads: Roads, topic: str) -> Any:
    status, body = await roads.get(f"topics/{topic}")
    return "denied" if status in (403, 404) else body["partitions"]


async def _http_changes(roads: Roads, topic: str) -> Any:
    return (await roads.get("changes"))[0]


Road = Callable[[Roads, str], Awaitable[Any]]


def _of_listing(names: list[str], rules: Rules, role: str) -> list[Any]:
    """A listing; a denial if no rule allows any topic, and if that only happens to be so."""
    if names:
        return [names]
    return ["denied", []] if _visible(rules, role) == [] else [[]]


def _of_pattern(rules: Rules, role: str, topic: str) -> list[Any]:
    word = topic.partition("-")[0]
    seen = [each for each in _visible(rules, role) if each.startswith(f"{word}-")]
    return _of_listing(_listed(seen), rules, role)


def _of_changes(rules: Rules, role: str, topic: str) -> list[Any]:
    about = _about(rules, role, "list")
    if any(rule[3] and rule[4] is None for rule in about) and all(rule[3] for rule in about):
        return [200]
    return [409] if _visible(rules, role) else [409, 403]


def _of_right(action: str, allowed: Callable[[str], Any]) -> Callable[[Rules, str, str], list[Any]]:
    def expected(rules: Rules, role: str, topic: str) -> list[Any]:
        return [allowed(topic) if _may(rules, role, action, topic) else "denied"]

    return expected


_EXPECTED: Final[dict[Road, Callable[[Rules, str, str], list[Any]]]] = {
    _list: _of_pattern,
    _look_up: lambda rules, role, topic: [
        TOPICS[topic] if _may(rules, role, "list", topic) or _may(rules, role, "lookup", topic) else "denied"
    ],
    _kafka_list: lambda rules, role, topic: _of_listing(
        list(filter(str.isascii, _visible(rules, role))), rules, role
    ),
    _kafka_describe: lambda rules, role, topic: [
        (TOPICS[_legal(topic)] or 1) if _is_known(rules, role, _legal(topic)) else "denied"
    ],
    _kafka_create: lambda rules, role, topic: [
        "created" if _may(rules, role, "admin", f"{_legal(topic)}0") else "denied"
    ],
    _http_list: lambda rules, role, topic: _of_listing(_listed(_visible(rules, role)), rules, role),
    _http_topic: _of_right("list", TOPICS.__getitem__),
    _http_changes: _of_changes,
}
_ROADS: Final = tuple(_EXPECTED)


def _text(rules: Rules) -> str:
    return (
        '[pulsar]\nlisten = "127.0.0.1:0"\n[http]\nlisten = "127.0.0.1:0"\n[catalog]\npath = "c.sqlite"\n'
        f'[kafka]\nlisten = "127.0.0.1:0"\nnamespace = "{SPACE}"\n[kafka.sasl]\nmechanisms = ["OAUTHBEARER"]\n'
        '[authentication]\nmethods = ["token"]\n[authentication.token]\nkey = "file:one.key"\n'
        '[limits]\nconnections = 100\n[log]\nlevel = "error"\n'
    ) + _as_toml(rules)


async def _data(data: bytes) -> bytes:
    return data


@asynccontextmanager
async def _scene(
    folder: Path, seed: int, plugins: Mapping[str, object] | None = None
) -> AsyncIterator[tuple[Scene, list[Rules]]]:
    chance = random.Random(seed)
    with SqliteCatalog(folder / "c.sqlite") as catalog:
        for name, partitions in TOPICS.items():
            catalog.create(TopicName.parse(f"persistent://{SPACE}/{name}"), partitions=partitions)
        catalog.create(TopicName.parse("persistent://a/c/other"))
    (folder / "one.key").write_bytes(der(rsa_key()))
    file = folder / "broker-core.toml"
    sets = [_rules(chance) for _ in range(5)]
    file.write_text(_text(sets[0]), encoding="utf-8")

    def load() -> Settings:
        return load_settings(file, environment={}).settings

    async with Broker(load(), load=load, plugins=plugins) as broker, AsyncExitStack() as stack:
        scene = Scene(file, chance, broker, in_force=[sets[0]])
        assert broker.http_address is not None
        assert broker.kafka_address is not None
        for role in ROLES:
            signed = token({"sub": role, "exp": int(time.time()) + 36_000})
            scene.roads[role] = Roads(
                role,
                await stack.enter_async_context(
                    LookupSession(
                        "pulsar://{}:{}".format(*broker.pulsar_address),
                        credentials=Credentials("token", partial(_data, signed)),
                    )
                ),
                await stack.enter_async_context(
                    AdminClient("{}:{}".format(*broker.kafka_address), sasl=OAuthBearer(signed.decode()))
                ),
                await stack.enter_async_context(
                    aiohttp.ClientSession(headers={"Authorization": f"Bearer {signed.decode()}"})
                ),
                "http://{}:{}".format(*broker.http_address),
            )
        yield scene, sets


async def _held(folder: Path, seed: int, questions: int, pause: float) -> Scene:
    async with _scene(folder, seed) as (scene, sets):
        over = asyncio.Event()

        async def ask() -> None:
            while scene.asked < questions:
                await scene.ask()

        async def reload() -> None:
            number = 0
            while not over.is_set():
                number += 1
                await scene.reload(sets[number % len(sets)])
                # Some questions by these rules alone.
                until = min(scene.asked + 20, questions)
                while scene.asked < until and not over.is_set():
                    await asyncio.wait([asyncio.create_task(over.wait())], timeout=max(pause, 0.01))

        asking = [asyncio.create_task(ask()) for _ in range(8)]
        reloading = asyncio.create_task(reload())
        try:
            await asyncio.gather(*asking)
        finally:
            over.set()
            for task in asking:
                task.cancel()
            await asyncio.gather(*asking, return_exceptions=True)
            await reloading
        return scene


@pytest.mark.parametrize("seed", [1, 2])
async def test_answers_are_those_of_brute_force_while_rules_are_reloaded(tmp_path: Path, seed: int) -> None:
    scene = await _held(tmp_path, seed, 400, 0)
    assert scene.asked >= 400


class Gate:
    """A plugin that lets a question wait between the rules and its answer."""

    def __init__(self) -> None:
        self.waits = asyncio.Event()
        self.opens = asyncio.Event()

    @hookimpl
    async def broker_core_authorize(self, access: Access) -> None:
        self.waits.set()
        await self.opens.wait()


async def test_a_right_that_is_taken_while_a_question_waits_hides_all_and_not_nothing(tmp_path: Path) -> None:
    some: Rules = ((("ann",), (SPACE,), ("list",), True, ("orders-*",)),)
    other: Rules = ((("bob",), (SPACE,), ("list",), True, None),)
    gate = Gate()
    async with _scene(tmp_path, 1, {"gate": gate}) as (scene, _):
        gate.opens.set()
        await scene.reload(some)
        assert await _list(scene.roads["ann"], "orders-x-00")
        gate.opens.clear()
        gate.waits.clear()
        asking = [
            asyncio.create_task(road(scene.roads["ann"], "orders-x-00")) for road in (_list, _http_list)
        ]
        await gate.waits.wait()
        await scene.reload(other)
        gate.opens.set()
        assert await asyncio.gather(*asking) == ["denied", "denied"]


@pytest.mark.long
async def test_ten_thousand_answers_beside_a_reload_each_second(tmp_path: Path) -> None:
    scene = await _held(tmp_path, 32, 10_000, 1.0)
    assert scene.asked >= 10_000

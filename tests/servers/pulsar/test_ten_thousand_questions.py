"""Ten thousand questions of several principals, over every policy of plugins: nothing crosses.

docs/explanation/promises.md#nothing-crosses-principals

Each scene is a chain of plugins with random policies: versions told before the work or with the answer, or none;
failures with an error, the next plugin or the last answer; what is declared is right, everything, or wrong. Questions
come in crowds, many of them equal, so that they wait for each other's answers; between the crowds the world changes.
What a client gets is compared with all that the same plugins may say to this very client, worked out by hand.
"""

from __future__ import annotations

import asyncio
import itertools
import random
from collections import Counter
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeAlias

import pyarrow.compute as pc
import pytest

from broker_core import BoundedCache, ListingBuilder, ListingRequest, TopicListingResult, hookimpl
from broker_core.client import ServerRefused
from broker_core.errors import ServerError
from broker_core.plugins.call.circuit_breaker import COOLDOWN, CircuitBreaker
from broker_core.testing import Server, serve

QUESTIONS: Final = 10_000
SCENES: Final = 20
CROWD: Final = 25
NAMESPACES: Final = ("t/n", "t/m")
ROLES: Final = ("ann", "bob", "cid")
REGIONS: Final = ("eu", "us")
CATALOG: Final = {
    namespace: [f"persistent://{namespace}/shared-{region}-{n}" for region in REGIONS for n in range(3)]
    for namespace in NAMESPACES
}
#: Nobody lists t/m but these.
RULES: Final = {
    "rules": [
        {"roles": ["*"], "namespaces": ["t/n"], "actions": ["list", "lookup"]},
        {"roles": ["ann"], "namespaces": ["t/m"], "actions": ["list", "lookup"]},
    ]
}


@dataclass(frozen=True)
class World:
    """What the plugins know at one time; its number is the version of all of it."""

    number: int
    secrets: dict[str, int]
    hidden: dict[str, int]

    def of_role(self, namespace: str, role: str | None) -> list[str]:
        return [f"persistent://{namespace}/secret-{role}-{n}" for n in range(self.secrets.get(role or "", 0))]

    def shows(self, role: str | None, name: str) -> bool:
        return not name.endswith(f"-{self.hidden.get(role or '', 9)}")


@dataclass
class Policy:
    """How a plugin behaves, and what its operator has set."""

    declares: set[str] | None
    versions: str
    on_failure: str
    is_async: bool
    failing: bool = False

    @classmethod
    def random(cls, dice: random.Random) -> Policy:
        wrong: list[set[str] | None] = [None, {"principal"}, set(), {"properties"}, {"property:region"}]
        return cls(
            dice.choice(wrong),
            dice.choice(["none", "before", "with", "both"]),
            dice.choice(["error", "next", "stale"]),
            dice.choice([True, False]),
        )


@dataclass
class Scene:
    """The plugins of a server, and the worlds that there were."""

    dice: random.Random
    fails: bool
    worlds: list[World] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.change()

    @property
    def world(self) -> World:
        return self.worlds[-1]

    def change(self) -> None:
        numbers = {role: self.dice.randrange(4) for role in ROLES}
        hidden = {role: self.dice.randrange(4) for role in ROLES}
        self.worlds.append(World(len(self.worlds), numbers, hidden))


class Plugin:
    """A plugin of a scene. Its hooks are attributes of the object, as its policy wants them."""

    def __init__(self, scene: Scene, policy: Policy) -> None:
        self.scene = scene
        self.policy = policy
        if policy.declares is not None:
            declares = policy.declares

            @hookimpl
            def broker_core_depends_on() -> set[str]:
                return declares

            self.broker_core_depends_on = broker_core_depends_on
        if policy.versions in ("before", "both"):

            @hookimpl
            def broker_core_version() -> str:
                return str(self.scene.world.number)

            self.broker_core_version = broker_core_version

    def hook(self, function: Any) -> Any:
        """A hook as a function or a coroutine function."""
        if not self.policy.is_async:
            return hookimpl(function)

        async def later(request: ListingRequest, topics: Any = None) -> Any:
            await asyncio.sleep(0)
            return function(request) if topics is None else function(request, topics)

        if function.__code__.co_argcount == 1:

            async def listing(request: ListingRequest) -> Any:
                return await later(request)

            return hookimpl(listing)

        async def masking(request: ListingRequest, topics: Any) -> Any:
            return await later(request, topics)

        return hookimpl(masking)

    @property
    def version(self) -> str | None:
        return str(self.scene.world.number) if self.policy.versions in ("with", "both") else None


class OfRole(Plugin):
    """Lists what is for the role that asks, and passes to a role that has nothing."""

    def __init__(self, scene: Scene, policy: Policy) -> None:
        super().__init__(scene, policy)

        def listing(request: ListingRequest) -> TopicListingResult | None:
            if policy.failing:
                raise RuntimeError("no database")
            topics = scene.world.of_role(str(request.namespace), request.asker.role)
            return TopicListingResult.success(topics, version=self.version) if topics else None

        self.broker_core_list_topics = self.hook(listing)


class Union(Plugin):
    """What is behind it, and what is for the role that asks."""

    def __init__(self, scene: Scene, policy: Policy) -> None:
        super().__init__(scene, policy)

        @hookimpl
        async def broker_core_list_topics(request: ListingRequest) -> TopicListingResult:
            if policy.failing:
                raise RuntimeError("no database")
            behind = await request.rest()
            builder = ListingBuilder(request)
            builder.add(behind.selection.names)
            builder.add(scene.world.of_role(str(request.namespace), request.asker.role))
            return TopicListingResult.success(builder.finish(), version=self.version)

        self.broker_core_list_topics = broker_core_list_topics


class Cache(Plugin):
    """Keeps what is behind it in a cache of its own, by the key that the server gives."""

    def __init__(self, scene: Scene, policy: Policy) -> None:
        super().__init__(scene, policy)
        kept: BoundedCache[Any, Any] = BoundedCache(10_000_000)

        @hookimpl
        async def broker_core_list_topics(request: ListingRequest) -> TopicListingResult:
            if policy.failing:
                raise RuntimeError("no database")
            key = (scene.world.number, request.key(pattern=None))
            selection = kept.get(key)
            if selection is None:
                selection = (await request.rest(pattern=None)).selection
                kept.put((scene.world.number, request.key(pattern=None)), selection, selection.listing.nbytes)
            return TopicListingResult.success(selection, version=self.version)

        self.broker_core_list_topics = broker_core_list_topics


class Mask(Plugin):
    """Hides one number from each role."""

    def __init__(self, scene: Scene, policy: Policy) -> None:
        super().__init__(scene, policy)

        def masking(request: ListingRequest, topics: Any) -> Any:
            number = scene.world.hidden.get(request.asker.role or "", 9)
            return pc.invert(pc.ends_with(topics, pattern=f"-{number}"))

        self.broker_core_visible = self.hook(masking)


class RegionMask(Plugin):
    """Hides the other regions from an asker that names one. It reads no role."""

    def __init__(self, scene: Scene, policy: Policy) -> None:
        if policy.declares is not None:
            policy.declares = {"property:region"}
        super().__init__(scene, policy)

        def masking(request: ListingRequest, topics: Any) -> Any:
            region = request.properties.get("region")
            if region is None:
                return None
            secret = pc.match_substring(topics, "/secret-")
            return pc.or_(secret, pc.match_substring(topics, f"-{region}-"))

        self.broker_core_visible = self.hook(masking)


KINDS: Final = {"role": OfRole, "union": Union, "cache": Cache, "mask": Mask, "region": RegionMask}
MASKS: Final = ("mask", "region")


@dataclass(frozen=True)
class Question:
    namespace: str
    role: str
    region: str | None
    pattern: str | None
    has_hash: bool


def possible(
    scene: Scene, chain: list[str], plugins: dict[str, Plugin], question: Question
) -> set[frozenset[str]]:
    """All answers that are right for this client now: one, if no plugin ever fails. If plugins fail, one

    whose ``on_failure`` is ``next`` may be left out, also of an answer that another one keeps;
    and of one whose ``on_failure`` is ``stale`` the last answer may be from any world. The masks are those of now.
    """

    def listed(behind: list[str], at: World) -> set[frozenset[str]]:
        if not behind:
            return {frozenset(CATALOG[question.namespace])}
        kind, rest = behind[0], behind[1:]
        policy = plugins[kind].policy
        worlds = scene.worlds if scene.fails and policy.on_failure == "stale" else [at]
        found = listed(rest, at) if scene.fails and policy.on_failure == "next" else set()
        for world in worlds:
            own = frozenset(world.of_role(question.namespace, question.role))
            if kind == "role":
                found |= {own} if own else listed(rest, at)
            elif kind == "union":
                found |= {names | own for names in listed(rest, world)}
            else:
                found |= listed(rest, world)
        return found

    def visible(name: str) -> bool:
        if question.pattern is not None and f"/{question.pattern}-" not in name:
            return False
        if "mask" in chain and not scene.world.shows(question.role, name):
            return False
        hides = "region" in chain and question.region is not None and "/secret-" not in name
        return not hides or f"-{question.region}-" in name

    listers = [kind for kind in chain if kind not in MASKS]
    return {frozenset(filter(visible, names)) for names in listed(listers, scene.world)}


def told_of_others(names: Iterable[str], role: str) -> list[str]:
    return [name for name in names if "/secret-" in name and f"/secret-{role}-" not in name]


@asynccontextmanager
async def served(
    chain: list[str], plugins: dict[str, Plugin], *, upstream: bool, rules: bool
) -> AsyncIterator[Server]:
    topics = list(itertools.chain(*CATALOG.values()))
    settings: dict[str, Any] = {
        "plugins": {
            kind: {"on_failure": plugins[kind].policy.on_failure} for kind in chain if kind not in MASKS
        }
    }
    if rules:
        settings["authorization"] = RULES
    if not upstream:
        async with serve(
            plugins, topics=topics, settings=settings, check_masks=False, check_reads=False
        ) as server:
            yield server
        return
    async with serve(topics=topics) as behind:
        settings["upstream"] = {"service_url": behind.url}
        async with serve(plugins, settings=settings, check_masks=False, check_reads=False) as server:
            yield server


#: The last answer to a question, whoever asked it: its hash and its names.
Hashes: TypeAlias = dict[tuple[str, str | None, str | None], tuple[str, frozenset[str]]]


async def ask(server: Server, question: Question, hashes: Hashes) -> frozenset[str] | ServerError:
    """The names, also if they are those of the client's hash; or the code of an error."""
    place = (question.namespace, question.region, question.pattern)
    topics_hash, names = hashes.get(place, (None, frozenset())) if question.has_hash else (None, frozenset())
    try:
        answer = await server.list(
            question.namespace,
            role=question.role,
            properties=None if question.region is None else {"region": question.region},
            pattern=None if question.pattern is None else f"{question.namespace}/{question.pattern}-.*",
            topics_hash=topics_hash,
        )
    except ServerRefused as refused:
        return refused.code
    if not answer.changed:
        return names
    hashes[place] = answer.topics_hash or "", frozenset(answer.topics)
    return frozenset(answer.topics)


async def scene_of(number: int, questions: int) -> Counter[str]:
    """One scene; how often each kind of answer was given."""
    dice = random.Random(number)
    scene = Scene(dice, fails=number % 2 == 1)
    chain = dice.sample(list(KINDS), 0 if number % 10 == 0 else dice.randint(1, len(KINDS)))
    plugins: dict[str, Plugin] = {kind: KINDS[kind](scene, Policy.random(dice)) for kind in chain}
    rules = number % 3 != 0
    counts: Counter[str] = Counter()
    hashes: Hashes = {}
    async with served(chain, plugins, upstream=number % 4 > 1, rules=rules) as server:
        for _ in range(questions // CROWD):
            few = [
                Question(
                    dice.choice(NAMESPACES),
                    dice.choice(ROLES),
                    dice.choice([None, None, *REGIONS]),
                    dice.choice([None, "shared", "secret"]),
                    dice.choice([True, False]),
                )
                for _ in range(8)
            ]
            few += [replace(question, role=dice.choice(ROLES)) for question in few]
            crowd = [dice.choice(few) for _ in range(CROWD)]
            answers = await asyncio.gather(*(ask(server, question, hashes) for question in crowd))
            for question, answer in zip(crowd, answers, strict=True):
                counts[judged(scene, chain, plugins, question, answer, rules=rules)] += 1
            if dice.random() < 0.4:
                scene.change()
            for plugin in plugins.values():
                plugin.policy.failing = scene.fails and dice.random() < 0.3
    return counts


def judged(
    scene: Scene,
    chain: list[str],
    plugins: dict[str, Plugin],
    question: Question,
    answer: frozenset[str] | ServerError,
    *,
    rules: bool,
) -> str:
    """The word for an answer, which is right for its asker."""
    told = (scene.world, chain, question, {kind: plugins[kind].policy for kind in chain})
    if rules and question.namespace == "t/m" and question.role != "ann":
        assert answer is ServerError.AuthorizationError, told
        return "denied"
    if isinstance(answer, ServerError):
        failing = [kind for kind in chain if kind not in MASKS and plugins[kind].policy.failing]
        assert any(plugins[kind].policy.on_failure != "next" for kind in failing), (answer, told)
        return "failed"
    assert not told_of_others(answer, question.role), (answer, told)
    assert answer in possible(scene, chain, plugins, question), (answer, told)
    return "answered"


@pytest.mark.parametrize(
    "number", [pytest.param(number, marks=[pytest.mark.long] * (number >= 5)) for number in range(SCENES)]
)
async def test_nothing_crosses(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    # A breaker that opens would go on failing for seconds.
    monkeypatch.setattr(CircuitBreaker.__init__, "__defaults__", (1_000_000, COOLDOWN))
    counts = await scene_of(number, QUESTIONS // SCENES)
    assert sum(counts.values()) == QUESTIONS // SCENES
    assert counts["answered"] > 50
    assert counts["failed"] == 0 or number % 2

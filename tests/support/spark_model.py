"""A catalogue with listings by brute force, and generations of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any
from uuid import uuid4

import re2

from broker_core.catalog import SqliteCatalog
from broker_core.listing.listing_hash import utf16_key
from broker_core.names import DOMAINS, Mode, NamespaceName, TopicName
from broker_core.patterns import compile_pattern
from broker_core.patterns.topics_pattern import strip_scheme
from broker_core.testing import Server
from broker_core_spark.batch.incremental.carry_segments import carry_segments
from broker_core_spark.format.canonical_question import CanonicalQuestion
from broker_core_spark.format.manifest import Manifest
from broker_core_spark.store import Store, open_store
from broker_core_spark.store.published_pointers import PublishedPointer
from broker_core_spark.store.publishing import begin_build
from broker_core_spark.store.verified_files import put_all_verified
from tests.support.generation_builder import build_generation
from tests.support.spark_catalogues import Names, changes_of, kept_selectors

__all__ = ["Built", "CatalogueModel", "Question", "publish", "publish_upon", "random_name", "random_question"]

NAMESPACES = ("public/default", "public/orders", "acme/eu")
TEAMS = ("red", "blue", "green")
_WORDS = ("orders", "payments", "audit", "a", "k", "K", "é", "😀", "x" * 120)

#: Namespace, mode, pattern as a client sends it, properties.
Question = tuple[str, Mode, str | None, dict[str, str]]


def random_name(random: Random) -> str:
    """A full name of a topic, sometimes one with the prefix of others."""
    local = f"{random.choice(_WORDS)}-{random.choice(_WORDS)}-{random.randrange(40)}"
    if random.random() < 0.05:
        local = random.choice(["__change_events", "a\nb", "x-partition-", "x-partition-007"])
    domain = DOMAINS[0] if random.random() < 0.8 else DOMAINS[1]
    return f"{domain}://{random.choice(NAMESPACES)}/{local}"


def random_question(random: Random) -> Question:
    """A client's question. RE2 refuses some of the patterns."""
    namespace = random.choice(NAMESPACES)
    one, other, number = random.choice(_WORDS), random.choice(_WORDS), random.randrange(40)
    pattern = random.choice(
        [
            *(None, ".*", f"{namespace}/.*", f"{namespace}/{one}.*", f"{namespace}/{one}-{other}-.*"),
            *(f"persistent://{namespace}/{one}.*", f".*-{other}-.*", f"{namespace}/.*-{number}"),
            *(
                f"{namespace}/({one}|{other})-.*",
                f"(?i){namespace}/k-.*",
                f"{namespace}/{one}-{other}-{number}",
            ),
            *(f"{namespace}/(?!{one}).*", f"{namespace}/[a-p].*[02468]", f".*{one}.*{number}.*", "nothing"),
        ]
    )
    properties = {}
    if random.random() < 0.3:
        properties["team"] = random.choice(TEAMS)
    if random.random() < 0.1:
        properties["note"] = "selects nothing"
    return namespace, random.choice(list(Mode)), pattern, properties


class CatalogueModel:
    """The topics of a server's catalogue by full name, with their properties and numbers of partitions.

    Every change is made in both.
    """

    def __init__(self, server: Server) -> None:
        self._server = server
        self.topics: dict[str, tuple[int, dict[str, str]]] = {}
        self._parsed: dict[str, tuple[str, str, str]] = {}
        self._engines: dict[str, Any] = {}

    @property
    def catalog(self) -> SqliteCatalog:
        catalog = self._server.broker.catalog
        assert catalog is not None
        return catalog

    async def fill(self, names: Iterable[str], random: Random) -> None:
        """Create topics, some of them partitioned."""
        for name in names:
            await self.create(name, random)

    async def create(self, name: str, random: Random) -> None:
        """Create a topic if there is none of the name."""
        base = str(TopicName.parse(name).partitioned_name)
        if base != name or name in self.topics:
            return
        partitions = random.choice([0, 0, 0, 1, 3])
        properties = {"team": random.choice(TEAMS)} if random.random() < 0.6 else {}
        await self._server.create(name, partitions=partitions, properties=properties)
        self.topics[name] = partitions, properties

    async def delete(self, name: str) -> None:
        await self._server.delete(name)
        del self.topics[name]

    async def change(self, random: Random) -> None:
        """One change of some kind."""
        kind = random.random()
        if kind < 0.4 or not self.topics:
            await self.create(random_name(random), random)
        elif kind < 0.75:
            await self.delete(random.choice(sorted(self.topics)))
        else:
            name = random.choice(sorted(self.topics))
            partitions, _ = self.topics[name]
            properties = random.choice([{}, {"team": random.choice(TEAMS)}, {"team": "red", "note": "x"}])
            await asyncio.to_thread(self.catalog.set_properties, TopicName.parse(name), properties)
            self.topics[name] = partitions, properties

    def answer(self, requested: Question) -> list[str]:
        """What a listing must be, one name at a time."""
        namespace, mode, pattern, properties = requested
        matches = self._matcher(pattern)
        found: list[str] = []
        middle = f"://{namespace}/"
        for name, (partitions, own) in self.topics.items():
            if middle not in name:
                continue
            of_namespace, domain, form = self._parts(name)
            if of_namespace == namespace and mode.lists(domain) and matches(form):
                if properties.get("team", own.get("team")) == own.get("team"):
                    found += [f"{name}-partition-{index}" for index in range(partitions)] or [name]
        return sorted(found, key=utf16_key)

    def _parts(self, name: str) -> tuple[str, str, str]:
        """(namespace, domain, text to match) of a name. A hidden topic is in no namespace."""
        parts = self._parsed.get(name)
        if parts is None:
            topic = TopicName.parse(name)
            namespace = "" if topic.is_system else str(topic.namespace)
            parts = self._parsed[name] = namespace, topic.domain, f"{namespace}/{topic.local}"
        return parts

    def _matcher(self, pattern: str | None) -> Callable[[str], object]:
        text = None if pattern is None else strip_scheme(pattern)
        if pattern is None or text is None or text == ".*" or not compile_pattern(pattern).supported:
            return lambda _: True  # the client filters what RE2 refuses
        if text not in self._engines:
            self._engines[text] = re2.compile(text)
        engine = self._engines[text]
        return lambda form: engine.fullmatch(form) is not None


@dataclass(frozen=True, slots=True)
class Built:
    """A generation, and the names and questions that it was built of."""

    manifest: Manifest
    names: Names
    questions: Sequence[CanonicalQuestion]


async def publish(
    uri: str, model: CatalogueModel, requested: Iterable[Question], **options: Any
) -> PublishedPointer:
    """Build a generation of the current catalogue for these questions and publish it."""
    pointer, _ = await publish_upon(uri, model, requested, None, **options)
    return pointer


async def publish_upon(
    uri: str, model: CatalogueModel, requested: Iterable[Question], former: Built | None, **options: Any
) -> tuple[PublishedPointer, Built]:
    """Publish a generation like :func:`publish`, with its segments carried over from a ``former`` one of the store."""
    catalogue: dict[str, dict[str, list[str]]] = {
        name: {domain: [] for domain in DOMAINS} for name in NAMESPACES
    }
    properties: dict[str, Mapping[str, str]] = {}
    names: dict[tuple[str, str, str], str | None] = {}
    for name, (partitions, own) in model.topics.items():
        topic = TopicName.parse(name)
        locals_ = [f"{topic.local}-partition-{index}" for index in range(partitions)] or [topic.local]
        catalogue[str(topic.namespace)][topic.domain] += locals_
        properties[name] = own
        if not topic.is_system:
            names |= {(str(topic.namespace), topic.domain, local): own.get("team") for local in locals_}
    found = {
        CanonicalQuestion.of(
            namespace, mode, pattern, {key: value for key, value in given.items() if key == "team"}
        )
        for namespace, mode, pattern, given in requested
        if pattern is None or compile_pattern(pattern).supported
    }
    questions = sorted(found, key=lambda question: question.line)
    states = {name: model.catalog.version(NamespaceName.parse(name)) for name in NAMESPACES}
    versions = {name: state.number for name, state in states.items()}
    stamps = {name: state.stamp for name, state in states.items() if state.stamp}

    def build() -> tuple[PublishedPointer, Built]:
        store = open_store(uri)
        whole = store if former is None else open_store(f"memory://{uuid4()}")
        with begin_build(store) as begun:
            manifest = build_generation(
                whole,
                catalogue,
                questions,
                **{
                    "catalogue_id": model.catalog.catalog_id,
                    "versions": versions,
                    "stamps": stamps if options.get("versions", versions) else None,
                    "properties": properties,
                    "property_keys": ["team"],
                    "segment_bytes": 16 * 1024,
                    **options,
                },
            )
            built = Built(manifest, names, questions)
            if former is not None:
                _carry_over(store, former, built)
                for file in (*manifest.files, manifest.entry):  # what was made anew
                    put_all_verified(store, [(file, whole.get(file.name, file.size) or b"")])
            return begun.publish(manifest), built

    return await asyncio.to_thread(build)


def _carry_over(store: Store, former: Built, now: Built) -> None:
    carry_segments(
        store,
        former.manifest,
        changes_of(former.manifest, former.names, now.names, compared=False).items(),
        kept_selectors(store, former.questions, now.questions),
        "temporary/kept",
        ("team",),
    )

"""Random changes, in blocks and alone, and a fresh load after them: prints a JSON object, or fails if they differ.

Arguments (a JSON object): ``catalog``, ``namespace``, ``property_keys``, ``topics`` (a sample of local names that are
there), ``changes`` (how many topics are changed in all), ``alone`` (how many of them alone), ``looks`` (how often a
fresh broker is asked).

Each change is followed by the broker that runs all the time. A broker that was started for it says what the answers
should be: all rows in their order, encoded, the hash, patterns, a property, and all pages of one size.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import random
import sys
import time
from collections.abc import AsyncIterator
from typing import Any

from broker_core import ListingRequest, NamespaceName, Page, Position, TopicName
from broker_core.broker import Broker
from broker_core.catalog import SqliteCatalog, import_topics
from broker_core.patterns import compile_pattern
from broker_core.quantities import ListenAddress
from broker_core.settings import CatalogSettings, LimitsSettings, PulsarSettings, Settings

_MOST_IN_A_BLOCK = 3_000
_PAGES = 40
#: Letters whose order by UTF-16 is another than by UTF-8, too.
_LETTERS = "abz-09é\ue000\U0001f600"


class Walk:
    """Random changes of one namespace. ``created`` are topics that were made, and are there."""

    def __init__(self, catalog: SqliteCatalog, arguments: dict[str, Any]) -> None:
        self.catalog = catalog
        self.namespace = NamespaceName.parse(arguments["namespace"])
        self.pick = random.Random(12)
        self.there: list[str] = list(arguments["topics"])
        self.made = 0

    def change_one(self) -> int:
        """Create, delete or change one topic."""
        kind = self.pick.random()
        if kind < 0.4 or len(self.there) < 10:
            name = self._new()
            partitions = self.pick.choice((0, 0, 0, 0, 3))
            self.catalog.create(self._topic(name), partitions=partitions)
            self.there.append(name)
        elif kind < 0.8:
            self.catalog.delete(self._topic(self._take()))
        else:
            near = self.pick.choice(self.there)
            self.catalog.set_properties(self._topic(near), {"region": f"r{self.pick.randrange(10)}"})
        return 1

    def change_a_block(self, most: int) -> int:
        """Create or delete many topics at once, near to each other or all over the namespace."""
        count = self.pick.randint(1, min(most, _MOST_IN_A_BLOCK))
        if self.pick.random() < 0.5 or len(self.there) < 10:
            near = self.pick.choice(self.there) if self.pick.random() < 0.5 else None
            names = [self._new(near) for _ in range(count)]
            lines = "".join(f"{name}\n" for name in names)
            import_topics(self.catalog, self.namespace, io.BytesIO(lines.encode()))
            self.there += names
            return count
        names = [self._take() for _ in range(min(count, len(self.there) - 5))]
        self.catalog.delete_all([self._topic(name) for name in names])
        return len(names)

    def _new(self, near: str | None = None) -> str:
        self.made += 1
        base = self.pick.choice(self.there) if near is None else near
        return f"{base[:20]}-{''.join(self.pick.choices(_LETTERS, k=3))}{self.made}"

    def _take(self) -> str:
        at = self.pick.randrange(len(self.there))
        self.there[at], self.there[-1] = self.there[-1], self.there[at]
        return self.there.pop()

    def _topic(self, local: str) -> TopicName:
        return TopicName("persistent", self.namespace, local)


@contextlib.asynccontextmanager
async def started(arguments: dict[str, Any]) -> AsyncIterator[Broker]:
    """A broker without snapshots in files."""
    catalog = CatalogSettings(
        path=arguments["catalog"], property_keys=arguments["property_keys"], snapshots="off"
    )
    limits = LimitsSettings(snapshots=64 * 1024**3)
    pulsar = PulsarSettings(listen=ListenAddress("127.0.0.1", 0))
    settings = Settings(pulsar=pulsar, limits=limits, catalog=catalog)
    async with Broker(settings) as broker:
        yield broker


async def said(broker: Broker, namespace: NamespaceName, starts: list[str]) -> list[Any]:
    """All answers that are compared."""
    deadline = asyncio.get_running_loop().time() + 600
    patterns = (None, ".*-[0-9]*7", ".*é.*", f"{starts[0][:8]}.*" if starts else "none", ".*-partition-1")
    requests = [
        ListingRequest(
            namespace,
            pattern=None if text is None else compile_pattern(f"persistent://{namespace}/{text}"),
            deadline=deadline,
        )
        for text in patterns
    ]
    requests.append(ListingRequest(namespace, properties={"region": "r3"}, deadline=deadline))
    answers: list[Any] = []
    for request in requests:
        answer = await broker.pipeline.answer(request)
        body = b"" if answer.selection is None else bytes(answer.selection.body())
        answers.append((answer.topics, answer.topics_hash, body))
        answer.release()
    for local in starts:
        start = Position.of(str(TopicName("persistent", namespace, local)))
        answer = await broker.pipeline.answer(
            ListingRequest(namespace, page=Page(start, 1_000), deadline=deadline)
        )
        body = b"" if answer.selection is None else bytes(answer.selection.body())
        answers.append((answer.names.to_pylist(), body, answer.next))
        answer.release()
    return answers


async def walk(arguments: dict[str, Any]) -> dict[str, Any]:
    """All changes and looks."""
    changes, alone, looks = arguments["changes"], arguments["alone"], arguments["looks"]
    with SqliteCatalog(arguments["catalog"]) as catalog:
        walk = Walk(catalog, arguments)
        async with started(arguments) as broker:
            done, by_one, spent, answers = 0, 0, 0.0, 0
            for look in range(1, looks + 1):
                until = changes * look // looks
                while done < until:
                    if by_one < alone * look // looks:
                        done += walk.change_one()
                        by_one += 1
                    else:
                        done += walk.change_a_block(until - done)
                    begun = time.process_time()
                    answer = await broker.pipeline.answer(
                        ListingRequest(walk.namespace, deadline=asyncio.get_running_loop().time() + 600)
                    )
                    answer.release()
                    spent += time.process_time() - begun
                    answers += 1
                starts = walk.pick.sample(walk.there, min(_PAGES, len(walk.there)))
                followed = await said(broker, walk.namespace, starts)
                async with started(arguments) as fresh:
                    loaded = await said(fresh, walk.namespace, starts)
                for at, (one, other) in enumerate(zip(followed, loaded, strict=True)):
                    if one != other:
                        sys.exit(f"answer {at} after {done} changes differs from that of a fresh load")
    return {"changed": done, "alone": by_one, "cpu": spent / answers, "looks": looks}


if __name__ == "__main__":
    print(json.dumps(asyncio.run(walk(json.loads(sys.argv[1])))))

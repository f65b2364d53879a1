"""A client of topic list watchers that joins updates, and trusts nothing: each hash is computed again."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

from broker_core.errors import ServerError
from broker_core.listing.listing_hash import topics_hash
from broker_core.wire.pulsar import commands
from broker_core.wire.pulsar.messages.pulsar_api_pb2 import BaseCommand
from tests.support.raw_client import RawClient, Refused

__all__ = ["WatchedTopics", "WatchingClient"]


@dataclass
class WatchedTopics:
    """What a watcher has: each update must be exactly one that fits, and its hash that of the topics after it."""

    topics: set[str] = field(default_factory=set)
    updates: int = 0

    def begin(self, topics: Iterable[str], told: str) -> None:
        """All topics, after SUCCESS."""
        names = list(topics)
        assert len(names) == len(set(names))
        self.topics = set(names)
        assert topics_hash(sorted(self.topics)) == told

    def update(self, new: Collection[str], deleted: Collection[str], told: str) -> None:
        """An UPDATE."""
        assert new or deleted
        assert len(set(new)) == len(new)
        assert not self.topics & set(new), "it was told twice"
        assert self.topics >= set(deleted), "it went before it came"
        self.topics = (self.topics | set(new)) - set(deleted)
        assert topics_hash(sorted(self.topics)) == told
        self.updates += 1

    @property
    def hash(self) -> str:
        """The hash of what it has."""
        return topics_hash(sorted(self.topics))


class WatchingClient:
    """One connection with watchers. Updates are joined as they are read."""

    def __init__(self, client: RawClient) -> None:
        self.client = client
        self.watched: dict[int, WatchedTopics] = {}
        self._request_id = 0

    @classmethod
    async def open(cls, address: tuple[str, int], **options: Any) -> Self:
        """Connect; options are those of :meth:`RawClient.open`."""
        return cls(await RawClient.open(address, **options))

    async def watch(
        self,
        pattern: str,
        namespace: str = "public/default",
        watcher_id: int = 7,
        topics_hash: str | None = None,
    ) -> WatchedTopics:
        """Open a watcher, or reconcile one; raises :exc:`Refused`."""
        self._request_id += 1
        own = self._request_id
        await self.client.send(commands.watch_topics(own, watcher_id, namespace, pattern, topics_hash))
        answer = await self._answer(own)
        body = answer.watchTopicListSuccess
        assert body.watcher_id == watcher_id
        watched = self.watched.setdefault(watcher_id, WatchedTopics())
        if topics_hash is not None and topics_hash == body.topics_hash and not body.topic:
            assert watched.hash == topics_hash or watched.topics == set()
            return watched
        watched.begin(body.topic, body.topics_hash)
        return watched

    async def close_watcher(self, watcher_id: int = 7) -> None:
        """Close a watcher."""
        self._request_id += 1
        own = self._request_id
        await self.client.send(commands.close_watcher(own, watcher_id))
        await self._answer(own)
        self.watched.pop(watcher_id, None)

    async def next(self) -> WatchedTopics:
        """Read one update, and join it."""
        while True:
            if (watched := await self._take(await self.client.receive())) is not None:
                return watched

    async def until(self, topics: Collection[str], watcher_id: int = 7) -> WatchedTopics:
        """Read until a watcher has exactly these topics."""
        while self.watched[watcher_id].topics != set(topics):
            await self.next()
        return self.watched[watcher_id]

    async def _answer(self, request_id: int) -> BaseCommand:
        while True:
            command = await self.client.receive()
            if command.type == BaseCommand.ERROR:
                assert command.error.request_id == request_id
                raise Refused(ServerError(command.error.error), command.error.message)
            if command.type in (BaseCommand.SUCCESS, BaseCommand.WATCH_TOPIC_LIST_SUCCESS):
                assert commands.request_id_of(command) == request_id
                return command
            await self._take(command)

    async def _take(self, command: BaseCommand) -> WatchedTopics | None:
        if command.type == BaseCommand.PING:
            await self.client.send(commands.pong())
            return None
        assert command.type == BaseCommand.WATCH_TOPIC_UPDATE, command
        body = command.watchTopicUpdate
        watched = self.watched[body.watcher_id]
        watched.update(body.new_topics, body.deleted_topics, body.topics_hash)
        return watched

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.client.close()

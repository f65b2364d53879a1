"""A cluster of one broker whose faults a test chooses: listings by principal, hashes, verdicts and watches."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, Self

from broker_core.errors import ServerError
from broker_core.listing.listing_hash import topics_hash
from broker_core.wire.pulsar import commands
from broker_core.wire.pulsar.messages.pulsar_api_pb2 import BaseCommand, CommandGetTopicsOfNamespace
from tests.support.scripted_server import Peer, ScriptedServer
from tests.support.topics_answers import get_topics_response

__all__ = ["FakeCluster"]


class FakeCluster:
    """``async with FakeCluster() as cluster``. ``topics`` are the names of each namespace, both domains together.

    ``denied`` are principals that may list nothing; ``gate`` holds answers back; ``answers`` is what part of a listing
    is sent in place of all.
    """

    def __init__(self, **options: Any) -> None:
        self.topics: defaultdict[str, list[str]] = defaultdict(list)
        self.denied: set[str] = set()
        self.gate = asyncio.Event()
        self.gate.set()
        self.answers = 1.0
        #: Watchers by the connection and the number: their namespace.
        self.watchers: dict[tuple[Peer, int], str] = {}
        #: What becomes of each update: whether it is sent, and how often.
        self.fault: Callable[[bytes], Sequence[bytes]] = lambda frame: [frame]
        #: Who asked for what: the principal, and GET_TOPICS as it came.
        self.asked: list[tuple[str, Any]] = []
        self._held: set[asyncio.Task[None]] = set()
        self.server = ScriptedServer(self._script, **options)

    @property
    def url(self) -> str:
        return self.server.url

    async def __aenter__(self) -> Self:
        await self.server.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.server.stop()
        for held in self._held:
            held.cancel()

    def listed(self, namespace: str, mode: int) -> list[str]:
        """What a listing has now."""
        domains = (("persistent://",), ("non-persistent://",), ("persistent://", "non-persistent://"))[mode]
        names = [name for name in self.topics[namespace] if name.startswith(domains)]
        return names[: int(len(names) * self.answers)]

    def change(self, namespace: str, *, new: Sequence[str] = (), deleted: Sequence[str] = ()) -> None:
        """Let topics come and go, each by an update of its own, as brokers tell it."""
        for names, gone in ((deleted, True), (new, False)):
            for name in names:
                (self.topics[namespace].remove if gone else self.topics[namespace].append)(name)
                told = topics_hash(self.listed(namespace, 0))
                for (peer, watcher_id), watched in self.watchers.items():
                    if watched == namespace and name.startswith("persistent://"):
                        command = BaseCommand(type=BaseCommand.WATCH_TOPIC_UPDATE)
                        body = command.watchTopicUpdate
                        body.watcher_id, body.topics_hash = watcher_id, told
                        (body.deleted_topics if gone else body.new_topics).append(name)
                        for frame in self.fault(commands.encode(command)):
                            peer.send(frame)

    def lose_watchers(self) -> None:
        """Break the connections that watch."""
        for peer, _ in list(self.watchers):
            peer.abort()
        self.watchers.clear()

    def _watch(self, peer: Peer, command: BaseCommand) -> None:
        question = command.watchTopicList
        self.watchers[peer, question.watcher_id] = question.namespace
        names = self.listed(question.namespace, 0)
        answer = BaseCommand(type=BaseCommand.WATCH_TOPIC_LIST_SUCCESS)
        body = answer.watchTopicListSuccess
        body.request_id, body.watcher_id = question.request_id, question.watcher_id
        body.topics_hash = topics_hash(names)
        if question.topics_hash != body.topics_hash:
            body.topic.extend(names)
        peer.send(commands.encode(answer))

    async def _script(self, peer: Peer, command: BaseCommand) -> None:
        if command.type == BaseCommand.WATCH_TOPIC_LIST:
            self._watch(peer, command)
        elif command.type == BaseCommand.WATCH_TOPIC_LIST_CLOSE:
            self.watchers.pop((peer, command.watchTopicListClose.watcher_id), None)
            peer.send(commands.success(command.watchTopicListClose.request_id))
        if command.type != BaseCommand.GET_TOPICS_OF_NAMESPACE:
            return
        question = command.getTopicsOfNamespace
        who = principal_of(peer)
        self.asked.append((who, question))
        if self.gate.is_set():
            self._answer(peer, who, question)
        else:  # and PINGs meanwhile, as a broker does
            held = asyncio.create_task(self._answer_later(peer, who, question))
            self._held.add(held)
            held.add_done_callback(self._held.discard)

    async def _answer_later(self, peer: Peer, who: str, question: CommandGetTopicsOfNamespace) -> None:
        await self.gate.wait()
        self._answer(peer, who, question)

    def _answer(self, peer: Peer, who: str, question: CommandGetTopicsOfNamespace) -> None:
        if who in self.denied:
            peer.send(
                commands.error(
                    question.request_id,
                    ServerError.AuthorizationError,
                    "Client is not authorized to GetTopicsOfNamespace",
                )
            )
            return
        names = [] if question.topics_pattern == "^$" else self.listed(question.namespace, question.mode)
        told = topics_hash(names)
        same = question.HasField("topics_hash") and question.topics_hash == told
        peer.send(
            get_topics_response(
                question.request_id,
                [] if same else names,
                topics_hash=told,
                filtered=question.HasField("topics_pattern"),
                changed=not same,
            )
        )


def principal_of(peer: Peer) -> str:
    """The principal of a connection: the original principal, or the text of the token."""
    connect = peer.received[0].connect
    return connect.original_principal or connect.auth_data.decode()

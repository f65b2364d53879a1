"""One request of a Kafka client, as handlers get it, and the errors that they can raise in place of an answer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from broker_core.access import Access
from broker_core.client import ClientError
from broker_core.errors import InvalidName, ListingFailed
from broker_core.memory import Permit, PermitError
from broker_core.names import PERSISTENT, TopicName
from broker_core.servers.kafka.callers.authorizer import Caller
from broker_core.servers.kafka.row_error import (
    MOST_CHANGES,
    READ_ONLY,
    TOO_LARGE,
    ChangeRefused,
    RowError,
    code_of,
    error_of,
)
from broker_core.servers.kafka.services import KafkaServices, ShownNode
from broker_core.service import Action, Attempt, QuotaTurn, TopicEditor, right_to
from broker_core.upstream.kafka import CLUSTER_PLUGIN
from broker_core.wire.kafka import ErrorCode, Fields, RequestHeader

__all__ = ["CloseClient", "KafkaCall", "or_close"]

_Result = TypeVar("_Result")

#: Elements of a request that are looked at on the event loop, all together.
_FEW: Final = 200


class CloseClient(Exception):
    """The connection is to be closed, since no answer would be understood rightly: an empty listing is read as no
    topics. ``reason`` is a label of the metrics; the message is logged.
    """

    def __init__(self, message: str, reason: str = "unanswered") -> None:
        super().__init__(message)
        self.reason = reason


@contextmanager
def or_close() -> Iterator[None]:
    """Close the client if a listing or a cluster fails that its answer needs. Raises :exc:`CloseClient`."""
    try:
        yield
    except (ClientError, ListingFailed) as failed:
        raise CloseClient(str(failed)) from failed


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaCall(Caller):
    """``body`` is the request of the version in ``header``. ``node`` is the node that the client's listener advertises.

    ``began`` is when the request came, in loop time, ``size`` the bytes of a large one. ``attempt`` is the change that
    it wants to make.
    """

    header: RequestHeader
    body: Fields
    node: ShownNode
    services: KafkaServices
    began: float = 0.0
    size: int = 0
    attempt: Attempt = field(default_factory=lambda: Attempt(None), repr=False, compare=False)
    #: The turn of the request, if a quota matches it.
    turn: QuotaTurn | None = field(default=None, repr=False, compare=False)

    @property
    def version(self) -> int:
        return self.header.api_version

    @property
    def wants_operations(self) -> bool:
        """Whether a request for topics wants the authorized operations of each."""
        return bool(self.body["include_topic_authorized_operations"])

    @property
    def change_deadline(self) -> float:
        """The time after which no change of the request begins: its own time-out may come first."""
        timeout: int | None = self.body.get("timeout_ms")
        if timeout is None:
            return self.deadline
        return min(self.deadline, asyncio.get_running_loop().time() + max(timeout, 0) / 1000)

    @property
    def may_hide_topics(self) -> bool:
        """Whether rules, gates, masks or plugins may hide topics of a cluster behind this server from the client."""
        pipeline, namespace = self.services.pipeline, self.namespace
        dispatcher = pipeline.dispatcher
        # The cluster's own plugin is asked too, and lists all.
        others = (plugin.name != CLUSTER_PLUGIN for plugin, _ in dispatcher.describe_hook.plugins(namespace))
        return bool(pipeline.has_guards or dispatcher.masks(namespace) or any(others))

    @property
    def passes_now(self) -> bool:
        """Whether no gate is asked about each topic, so that those which the client may list it may look up too."""
        return self.services.pipeline.passes_now(self.asker, self.namespace)

    def topic(self, name: str) -> TopicName:
        """The topic of this name."""
        return TopicName(PERSISTENT, self.namespace, name)

    def full_name(self, name: str) -> str:
        """The full name of a topic of any name, whether or not there can be one, for the audit log."""
        return f"{PERSISTENT}://{self.namespace}/{name}"

    def may_list(self, name: str) -> bool:
        """Whether rules let the client see the details of a topic; without that right it may still create and change
        it.
        """
        try:
            topic = self.topic(name)
        except InvalidName:  # there can be none
            return True
        return self.services.pipeline.authorization.may_list(self.asker, topic)

    def changes(self, count: int = 0) -> TopicEditor:
        """The maker of changes, for ``count`` topics; raises :exc:`~.row_error.ChangeRefused` for the whole request."""
        if self.services.changes is None:
            raise ChangeRefused(READ_ONLY)
        if count > MOST_CHANGES:
            raise ChangeRefused(TOO_LARGE)
        return self.services.changes

    async def denied(self, names: Iterable[str]) -> dict[str, RowError]:
        """The errors of topics that rules and gates do not let the client change."""
        refused = await self.changes().refusals(self.attempt, map(self.topic, names), self.deadline)
        return {topic.local: error_of(refusal) for topic, refusal in refused.items()}

    async def refusal(self, code: ErrorCode, action: Action | None = None) -> RowError | None:
        """The error of a client that rules and gates do not let look at, or with ``action`` change, things of no topic;
        with ``code`` if they deny it.
        """
        pipeline = self.services.pipeline
        if not pipeline.has_guards:
            return None
        right = "list" if action is None else right_to(action)
        try:
            await pipeline.authorize(Access(right, self.namespace, None, self.asker), self.deadline)
        except ListingFailed as failure:
            return RowError(code_of(failure, code), failure.message)
        return None

    async def off_loop(self, count: int, work: Callable[..., _Result], *arguments: Any) -> _Result:
        """The result of ``work`` for ``count`` elements of the request: here, or beside the loop if they are many."""
        if count <= _FEW:
            return work(*arguments)
        return await self.services.large_requests.beside(self.size, work, *arguments)

    def room_to_keep(self, size: int) -> Permit | None:
        """Permits for so many bytes that outlive the answer, if there is room."""
        try:
            return self.services.pipeline.permits.snapshots.try_acquire(size)
        except PermitError:
            return None

    async def hold(self, size: int) -> Permit:
        """Hold heap permits for so many bytes of the answer, until it has left. Raises :exc:`CloseClient`."""
        heap = self.services.pipeline.permits.heap
        try:
            permit = await heap.acquire(size, key=self.asker.connection)
        except PermitError:
            raise CloseClient("no memory for the answer") from None
        self.hold_permit(permit)
        return permit

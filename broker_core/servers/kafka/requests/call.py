"""One request of a Kafka client, as handlers get it, and the row of its API in the table of handlers."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Final, TypeAlias, TypeVar

import structlog

from broker_core.access import Access
from broker_core.catalog import CatalogError
from broker_core.client import ClientError
from broker_core.errors import InvalidName, ListingFailed
from broker_core.memory import Permit, PermitError
from broker_core.names import PERSISTENT, TopicName
from broker_core.servers.kafka.callers.authorizer import Caller
from broker_core.servers.kafka.row_error import (
    FAILURES,
    MOST_CHANGES,
    READ_ONLY,
    TOO_LARGE,
    ChangeRefused,
    RowError,
    code_of,
    error_of,
    error_row,
)
from broker_core.servers.kafka.services import KafkaServices, ShownNode
from broker_core.service import Action, Attempt, AuditRow, QuotaTurn, TopicEditor, right_to
from broker_core.upstream.kafka import CLUSTER_PLUGIN
from broker_core.wire.kafka import Api, ErrorCode, Fields, RawRows, Reader, RequestHeader, error_name

__all__ = [
    "Answer",
    "AnswerLater",
    "CloseClient",
    "HandlerRow",
    "KafkaCall",
    "audited",
    "of_many",
    "or_close",
    "row_of",
]

_Answer = TypeVar("_Answer")
_Result = TypeVar("_Result")
_log = structlog.get_logger(__name__)

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
    """Request under way, with its caller and the services that answer it.

    ``body`` is the request of the version in ``header``. ``node`` is the node that the client's listener advertises.
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
        """Whether no gate decides about single topics, so that the client may look up each topic that it may list."""
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


#: Gives the answer within the deadline of the call.
AnswerLater: TypeAlias = Callable[[KafkaCall], Coroutine[Any, Any, Fields]]
#: Gives the answer itself, in less than a millisecond, or if that takes waiting a coroutine of it.
Answer: TypeAlias = Callable[[KafkaCall], "Fields | Coroutine[Any, Any, Fields]"]


@dataclass(frozen=True, slots=True)
class HandlerRow:
    """Row of an API: its parser and its handler.

    ``answer`` gives the fields of the response; it may raise :exc:`CloseClient`, and any other error closes
    the connection as an error of this server.

    ``shown_from`` is the first version in the list of ApiVersions, if it is not the first one that is understood.
    """

    api: Api
    answer: Answer
    #: Fills the page of a request that names topics by bytes, ``None``: its parts are asked for (:attr:`answer`).
    fill: Callable[[KafkaCall, RawRows], Awaitable[Fields | None]] | None = None
    #: Reads a request of a version, if not as :meth:`~broker_core.wire.kafka.Api.read_request` does.
    read: Callable[[Reader, int], Fields] | None = None
    shown_from: int | None = None

    async def answered(self, call: KafkaCall) -> Fields:
        """The answer, which may take waiting."""
        made = self.answer(call)
        return made if isinstance(made, dict) else await made

    def read_request(self, reader: Reader, version: int) -> Fields:
        """The body of a request. Raises :exc:`~broker_core.wire.kafka.MalformedMessage`."""
        return (self.read or self.api.read_request)(reader, version)


def of_many(work: Callable[[KafkaCall], Fields]) -> Answer:
    """A handler of requests of many elements: ``work`` on a large one is done beside the event loop."""

    def answer(call: KafkaCall) -> Fields | Coroutine[Any, Any, Fields]:
        return call.services.large_requests.beside(call.size, work, call) if call.size else work(call)

    return answer


async def audited(
    action: Action,
    change: Callable[[KafkaCall], Awaitable[_Answer]],
    rows_of: Callable[[KafkaCall, _Answer], Iterable[AuditRow]],
    refused: Callable[[KafkaCall, RowError], _Answer],
    call: KafkaCall,
) -> _Answer:
    """The answer of ``change`` to a request that changes something; ``rows_of`` reads the result of each from a request
    and its answer.

    A request that only validates has no line in the audit log. An unforeseen exception is logged, and is the answer of
    each row, as Kafka has it: ``refused`` gives an answer of one error.
    """
    attempt = Attempt(action, call.asker, namespace=str(call.namespace))
    call = replace(call, attempt=attempt)
    is_change = not call.body.get("validate_only")
    try:
        answer = await change(call)
    except (asyncio.CancelledError, CloseClient) as error:
        if is_change:
            attempt.ended([AuditRow("", "failed" if isinstance(error, CloseClient) else "abandoned")])
        raise
    except (CatalogError, ListingFailed) as error:
        answer = refused(call, error_of(error))
    except Exception as error:  # noqa: BLE001 - the client gets it, and the log
        _log.error("Kafka change failed", action=action, peer=call.asker.remote_address, exc_info=error)
        answer = refused(call, error_row(ErrorCode.UNKNOWN_SERVER_ERROR))
    if is_change:
        count = sum(len(value) for value in call.body.values() if isinstance(value, list))
        await call.off_loop(count, attempt.ended, rows_of(call, answer))
    return answer


def row_of(target: str, code: int, fields: Mapping[str, int | str | None] = MappingProxyType({})) -> AuditRow:
    """The result of a row of a request whose answer has this code."""
    if not code:
        return AuditRow(target, fields=fields)
    return AuditRow(target, "failed" if code in FAILURES else "refused", error_name(code), fields)

"""Topics that a client names, by name or by id: the question to the use case, and the answers as rows with codes."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Final, NamedTuple

from broker_core.catalog import FEW_TOPICS, TopicRecord
from broker_core.concurrency import loop_turn
from broker_core.kafka import INTERNAL, is_legal
from broker_core.kafka.acls import Operation, ResourceType
from broker_core.kafka.configs import sound_configs
from broker_core.names import PERSISTENT, TopicName
from broker_core.servers.kafka.callers.authorizer import Authorizer, Caller
from broker_core.servers.kafka.row_error import code_of
from broker_core.service import REFUSED_BY_ACLS, Find, Found, TopicAsker
from broker_core.wire.kafka import ZERO_ID, ErrorCode

__all__ = ["NamedTopic", "NamedTopics"]

#: Names that are made at a time.
_READ: Final = 500
_WANTS: Final = frozenset({"partitions", "topic_id"})
_NONE: Final[Mapping[str, str]] = MappingProxyType({})


class NamedTopic(NamedTuple):
    """A topic in a request, which may name 250,000 of them.

    ``name`` is ``None`` for an id whose name the client may not know, ``topic_id`` zero if it is unknown.

    ``partitions`` is the number that clients see, 0 with an error. ``record`` is the topic in the catalogue; ``None``
    with an error, and for topics that are not the catalogue's: such a topic has the ``given_configs``.
    """

    name: str | None
    topic_id: uuid.UUID = ZERO_ID
    partitions: int = 0
    internal: bool = False
    error: ErrorCode = ErrorCode.NONE
    message: str | None = None
    record: TopicRecord | None = None
    given_configs: Mapping[str, str] = _NONE

    @property
    def configs(self) -> Mapping[str, str]:
        """The configs that the topic sets itself, as far as they are known."""
        return self.given_configs if self.record is None else self.record.configs


class NamedTopics:
    """Asks the use case for persistent topics of the caller's namespace, by their own names."""

    def __init__(self, find: Find, authorizer: Authorizer) -> None:
        self._find = find
        self._authorizer = authorizer

    def are_listed(self, caller: Caller) -> bool:
        """Whether topics that a client may list and describe by ACLs are all that there are for it by their names."""
        return self._find.is_plain(caller.namespace)

    def unlisted(self, names: Sequence[str]) -> list[NamedTopic] | None:
        """The result of :meth:`by_name` for unlisted names, if :meth:`are_listed`; ``None`` if ACLs are asked."""
        if self._authorizer.enabled:
            return None
        unknown, illegal = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.INVALID_TOPIC_EXCEPTION
        return [
            NamedTopic(name, internal=name in INTERNAL, error=unknown)
            if is_legal(name)
            else NamedTopic(name, error=illegal)
            for name in names
        ]

    def now(
        self, caller: Caller, names: Sequence[str], ids: Sequence[uuid.UUID] = ()
    ) -> list[NamedTopic] | None:
        """The result of :meth:`by_name`, or for ids of :meth:`by_id`, for a few topics, if it takes no waiting."""
        if len(names) > FEW_TOPICS:
            return None
        if ids:
            found = self._find.now(self._asker_of(caller, of_ids=True), (), ids)
            return None if found is None else _noted(caller, list(map(_of_id, ids, found)))
        topics = _topics(caller, names)
        found = self._find.now(self._asker_of(caller), list(topics.values())) if topics else []
        if found is None:
            return None
        return _noted(caller, self._rows(caller, Operation.DESCRIBE, names, topics, found))

    async def by_name(
        self,
        caller: Caller,
        names: Sequence[str],
        *,
        operation: Operation | None = Operation.DESCRIBE,
        action: str = "describe",
        rules: str | None = None,
        wants: frozenset[str] = _WANTS,
    ) -> list[NamedTopic]:
        """The topics of these names in the order of the names, each with the code of its answer.

        ACLs have to allow ``operation`` (``None``: no ACLs are asked), gates the ``action``, and rules that or
        ``rules``.
        """
        requested = self._asker_of(caller, operation, action, wants, rules)
        rows: list[NamedTopic] = []
        for low in range(0, len(names), _READ):
            await loop_turn().time()
            some = names[low : low + _READ]
            topics = _topics(caller, some)
            found = await self._find.by_name(requested, list(topics.values())) if topics else ()
            rows += self._rows(caller, operation, some, topics, found)
        return _noted(caller, rows)

    async def by_id(
        self,
        caller: Caller,
        ids: Sequence[uuid.UUID],
        *,
        operation: Operation | None = Operation.DESCRIBE,
        rules: str | None = None,
    ) -> list[NamedTopic]:
        """Topics by their ids. One that is not there, hidden or of another namespace is 100, before ACLs."""
        requested = self._asker_of(caller, operation, rules=rules, of_ids=True)
        return _noted(caller, list(map(_of_id, ids, await self._find.by_id(requested, ids))))

    def _asker_of(
        self,
        caller: Caller,
        operation: Operation | None = Operation.DESCRIBE,
        action: str = "describe",
        wants: frozenset[str] = _WANTS,
        rules: str | None = None,
        *,
        of_ids: bool = False,
    ) -> TopicAsker:
        allowed: Callable[[TopicName], bool] | None = None
        if operation is not None and self._authorizer.enabled:
            allows = self._authorizer.allows

            def allowed(topic: TopicName) -> bool:
                return allows(caller, operation, ResourceType.TOPIC, topic.local)

        return TopicAsker(
            asker=caller.asker,
            action=action,
            rules=rules,
            allowed=allowed,
            can_have=_is_possible if of_ids else _is_listed,
            wants=wants,
            deadline=caller.deadline,
            namespace=caller.namespace,
        )

    def _rows(
        self,
        caller: Caller,
        operation: Operation | None,
        names: Sequence[str],
        topics: Mapping[str, TopicName],
        found: Sequence[Found],
    ) -> list[NamedTopic]:
        if len(found) == len(names):
            return list(map(_of_name, names, found))
        by_name = dict(zip(topics, found, strict=True))
        return [
            _of_name(name, by_name[name]) if name in by_name else self._illegal(caller, operation, name)
            for name in names
        ]

    def _illegal(self, caller: Caller, operation: Operation | None, name: str) -> NamedTopic:
        if operation is None or self._authorizer.allows(caller, operation, ResourceType.TOPIC, name):
            return NamedTopic(name, error=ErrorCode.INVALID_TOPIC_EXCEPTION)
        return NamedTopic(name, error=ErrorCode.TOPIC_AUTHORIZATION_FAILED)


def _noted(caller: Caller, rows: list[NamedTopic]) -> list[NamedTopic]:
    """The rows, which the page of the request knows from now on."""
    if caller.page is not None:
        for row in rows:
            caller.page.note(row.name, row.topic_id)
    return rows


def _topics(caller: Caller, names: Sequence[str]) -> dict[str, TopicName]:
    """The topics of the names that Kafka's topics can have."""
    return {name: TopicName(PERSISTENT, caller.namespace, name) for name in names if is_legal(name)}


def _is_listed(topic: TopicName) -> bool:
    """Whether a topic of this name can be in a listing by itself."""
    return topic.partition < 0 and not topic.is_system


def _is_possible(topic: TopicName) -> bool:
    """Whether Kafka can have a topic of the caller's namespace."""
    return is_legal(topic.local) and not topic.is_system


def _of_name(name: str, found: Found) -> NamedTopic:
    internal = name in INTERNAL
    if not found.exists:
        error, message = _error(found, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        return NamedTopic(name, internal=internal, error=error, message=message)
    partitions, record = found.partitions or 1, found.record
    if record is not None:
        return NamedTopic(name, record.topic_id, partitions, internal, ErrorCode.NONE, None, record)
    details = found.details
    topic_id = uuid.UUID(bytes=details["topic_id"]) if "topic_id" in details else ZERO_ID
    configs = sound_configs(details["configs"]) if "configs" in details else _NONE
    return NamedTopic(name, topic_id, partitions, internal, given_configs=configs)


def _of_id(topic_id: uuid.UUID, found: Found) -> NamedTopic:
    if found.exists and found.name is not None:
        return _of_name(found.name.local, found)
    error, message = _error(found, ErrorCode.UNKNOWN_TOPIC_ID)
    if error is ErrorCode.TOPIC_AUTHORIZATION_FAILED:
        message = None  # that of a gate may have the name
    return NamedTopic(None, topic_id, error=error, message=message)


def _error(found: Found, missing: ErrorCode) -> tuple[ErrorCode, str | None]:
    if found.failure is None:
        return missing, None
    return code_of(found.failure), None if found.failure is REFUSED_BY_ACLS else found.failure.message

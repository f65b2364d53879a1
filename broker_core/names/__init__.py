"""Names of namespaces and topics, one at a time and strictly.

What is allowed is Pulsar's own rule (``NamespaceName``, ``TopicName``, ``NamedEntity``, ``SystemTopicNames`` of the
broker, 5.0): a namespace is ``tenant/namespace`` of ``[-=:.\\w]`` (ASCII), a topic is
``domain://tenant/namespace/local``, and a partition is a topic whose local name ends in ``-partition-N`` with a
canonical ``N``. For whole columns of names see :mod:`broker_core.names.name_columns`.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Self

from broker_core.errors import InvalidName
from broker_core.immutable.sealed import seal, seal_value

__all__ = [
    "DOMAINS",
    "MAX_NAME_BYTES",
    "NON_PERSISTENT",
    "PERSISTENT",
    "Mode",
    "NamespaceName",
    "TopicName",
]

PERSISTENT: Final = "persistent"
NON_PERSISTENT: Final = "non-persistent"
DOMAINS: Final = (PERSISTENT, NON_PERSISTENT)
PARTITION_SUFFIX: Final = "-partition-"
MAX_PARTITION_INDEX: Final = 2**31 - 1  # partitions are counted in a Java int

#: A name longer than this (UTF-8 bytes) is refused: the metadata store of a real broker could not hold it, and the
#: length of a pre-encoded name must stay small and known.
MAX_NAME_BYTES: Final = 32_767
#: The same for a namespace, in characters (which are ASCII): clients choose it, and it is kept in many places.
MAX_NAMESPACE: Final = 1024

SYSTEM_LOCAL_NAMES: Final = frozenset(
    {
        "__change_events",
        "__transaction_buffer_snapshot",
        "__transaction_buffer_snapshot_segments",
        "__transaction_buffer_snapshot_indexes",
    }
)
SYSTEM_LOCAL_SUFFIX: Final = "__transaction_pending_ack"
SYSTEM_NAME_PREFIXES: Final = (
    "persistent://pulsar/system/transaction_coordinator_assign",
    "persistent://pulsar/system/__transaction_log_",
)

_ENTITY = re.compile(r"[-=:.\w]+", re.ASCII)
_CANONICAL_INDEX = re.compile(r"0|[1-9][0-9]*", re.ASCII)


class Mode(enum.IntEnum):
    """Which topics a listing is about; the numbers are those of ``CommandGetTopicsOfNamespace.Mode``."""

    PERSISTENT = 0
    NON_PERSISTENT = 1
    ALL = 2

    @classmethod
    def parse(cls, text: str) -> Mode:
        """``"persistent"``, ``"NON_PERSISTENT"``, ``"all"`` ... ; anything else is an :exc:`InvalidName`."""
        try:
            return cls[text.strip().upper().replace("-", "_")]
        except KeyError:
            raise InvalidName(f"Invalid mode {text!r}: one of persistent, non-persistent, all") from None

    def lists(self, domain: str) -> bool:
        """Whether topics of this domain belong into a listing of this mode."""
        if self is Mode.ALL:
            return domain in DOMAINS
        return domain == (PERSISTENT if self is Mode.PERSISTENT else NON_PERSISTENT)


class _Asked:
    """What a listing asks of its namespace several times; no field of it."""

    __slots__ = ("_hash", "_text")


_asked_text, _asked_hash = seal(_Asked, "_text"), seal(_Asked, "_hash")
_put_text, _put_hash = _asked_text.__set__, _asked_hash.__set__
_text_of: Final[Callable[[_Asked], str]] = _asked_text.__get__
_hash_of: Final[Callable[[_Asked], int]] = _asked_hash.__get__


@dataclass(frozen=True, slots=True, order=True, init=False)
class NamespaceName(_Asked):
    """A namespace; ``str()`` is ``tenant/namespace``. Building one checks both parts."""

    tenant: str
    namespace: str

    def __new__(cls, tenant: str, namespace: str) -> Self:
        # Of a kind of string, its characters: what it says of itself may change.
        tenant, namespace = str.__str__(tenant), str.__str__(namespace)
        size = len(tenant) + 1 + len(namespace)
        if size > MAX_NAMESPACE:
            shown = _shown(f"{tenant}/{namespace}")
            raise InvalidName(f"Invalid namespace name {shown}: {size} characters, at most {MAX_NAMESPACE}")
        for what, part in (("tenant", tenant), ("namespace", namespace)):
            if not _ENTITY.fullmatch(part):
                raise InvalidName(
                    f"Invalid namespace name {f'{tenant}/{namespace}'!r}: the {what} {part!r} must be one or more of "
                    "letters, digits, '_', '-', '=', ':' and '.'"
                )
        name = object.__new__(cls)
        _put_tenant(name, tenant)
        _put_namespace(name, namespace)
        _put_text(name, f"{tenant}/{namespace}")
        _put_hash(name, hash((tenant, namespace)))
        return name

    @classmethod
    def parse(cls, text: str) -> NamespaceName:
        """The namespace written as ``tenant/namespace``; an :exc:`InvalidName` says what is wrong with it."""
        return _parse_namespace(text)

    def __eq__(self, other: object) -> bool:
        if self is other:  # as a rule, since a name that is parsed is one object
            return True
        return _text_of(self) == _text_of(other) if type(other) is NamespaceName else NotImplemented

    def __hash__(self) -> int:
        return _hash_of(self)

    def __str__(self) -> str:
        return _text_of(self)


# One object stands for a namespace in many requests and listings.
_put_tenant, _put_namespace = seal_value(NamespaceName)


@lru_cache(maxsize=4096)
def _parse_namespace(text: str) -> NamespaceName:
    parts = text.split("/")
    if len(parts) != 2:
        raise InvalidName(f"Invalid namespace name {_shown(text)}: expected tenant/namespace")
    return NamespaceName(*parts)


@dataclass(frozen=True, slots=True, order=True, init=False)
class TopicName:
    """One topic; ``str()`` is its full name ``domain://tenant/namespace/local``. Building one checks all parts."""

    domain: str
    namespace: NamespaceName
    local: str

    def __new__(cls, domain: str, namespace: NamespaceName, local: str) -> Self:
        domain, local = str.__str__(domain), str.__str__(local)
        if domain not in DOMAINS:
            raise InvalidName(f"Invalid topic domain {_shown(domain)}: one of persistent, non-persistent")
        check_local_name(local)
        name = object.__new__(cls)
        _put_domain(name, domain)
        _put_topic_namespace(name, namespace)
        _put_local(name, local)
        return name

    @classmethod
    def parse(cls, text: str) -> TopicName:
        """The topic of a full name; an :exc:`InvalidName` says what is wrong with it."""
        domain, separator, rest = text.partition("://")
        parts = rest.split("/", 2)
        if not separator or len(parts) != 3:
            raise InvalidName(f"Invalid topic name {_shown(text)}: expected domain://tenant/namespace/topic")
        return cls(domain, NamespaceName(parts[0], parts[1]), parts[2])

    def __str__(self) -> str:
        return f"{self.domain}://{self.namespace}/{self.local}"

    @property
    def partition(self) -> int:
        """The index of the partition that this name is, or -1."""
        return partition_index(self.local)

    @property
    def partitioned_name(self) -> TopicName:
        """The topic that this name is a partition of; itself where it is none."""
        if self.partition < 0:
            return self
        return TopicName(self.domain, self.namespace, partitioned_local_name(self.local))

    @staticmethod
    def split_local(local: str) -> tuple[str, int]:
        """The topic's local name and the index of the partition (-1: none) that a listed local name says.

        ``orders-partition-3`` is ``("orders", 3)``; see :func:`partition_index` for what is an index.
        """
        index = partition_index(local)
        return (local, -1) if index < 0 else (partitioned_local_name(local), index)

    @property
    def is_system(self) -> bool:
        """Whether the broker keeps this topic for itself and hides it from listings.

        docs/reference/pulsar-behaviour.md#what-a-broker-lists
        """
        return is_system_topic(self.domain, self.namespace, self.local)


_put_domain, _put_topic_namespace, _put_local = seal_value(TopicName)


def check_local_name(local: str) -> None:
    """Raise an :exc:`InvalidName` unless ``local`` can be the last part of a topic's name."""
    if not local:
        raise InvalidName("Invalid topic name: the local name is empty")
    if "/" in local:
        raise InvalidName(f"Invalid topic name {_shown(local)}: a local name has no '/'")
    if "\0" in local:
        raise InvalidName(f"Invalid topic name {_shown(local)}: a local name has no NUL character")
    try:
        size = len(local.encode())
    except UnicodeEncodeError:
        raise InvalidName(
            f"Invalid topic name {_shown(local)}: it is not valid Unicode (a lone surrogate)"
        ) from None
    if size > MAX_NAME_BYTES:
        raise InvalidName(f"Invalid topic name {_shown(local)}: {size} bytes, at most {MAX_NAME_BYTES}")


def partition_index(local: str) -> int:
    """``N`` of a local name that ends in ``-partition-N``, or -1.

    Only a canonical index counts, as in Java's ``TopicName``: ``x-partition-007``, ``x-partition--1`` and
    ``x-partition-`` are no partitions; neither is a bare ``-partition-3``, which would leave no name.
    """
    base, separator, index = local.rpartition(PARTITION_SUFFIX)
    if (
        separator
        and base
        and len(index) <= 10
        and _CANONICAL_INDEX.fullmatch(index)
        and int(index) <= MAX_PARTITION_INDEX
    ):
        return int(index)
    return -1


def partitioned_local_name(local: str) -> str:
    """The local name without its partition suffix, if it has one."""
    return local[: local.rindex(PARTITION_SUFFIX)] if partition_index(local) >= 0 else local


@dataclass(frozen=True, slots=True)
class SystemTopics:
    """Which topics brokers keep for themselves: one rule for single names and for columns of them."""

    local_names: frozenset[str]
    local_suffix: str
    name_prefixes: tuple[str, ...]

    @property
    def mark(self) -> str:
        """What stands in each of these local names, to see quickly that a column has none; it may be empty."""
        return "__" if all("__" in name for name in (*self.local_names, self.local_suffix)) else ""

    def local_prefixes(self, namespace: NamespaceName, domain: str) -> list[str]:
        """How local names of a namespace begin that are system topics there; an empty one is all of them."""
        own = f"{domain}://{namespace}/"
        return [
            prefix.removeprefix(own) if prefix.startswith(own) else ""
            for prefix in self.name_prefixes
            if prefix.startswith(own) or own.startswith(prefix)
        ]


def system_topics_rule() -> SystemTopics:
    """The rule as of now."""
    return SystemTopics(SYSTEM_LOCAL_NAMES, SYSTEM_LOCAL_SUFFIX, SYSTEM_NAME_PREFIXES)


def is_system_topic(domain: str, namespace: NamespaceName, local: str) -> bool:
    """Whether a name is one of the topics that brokers keep for themselves, partitions of them included."""
    base, rule = partitioned_local_name(local), system_topics_rule()
    if base in rule.local_names or base.endswith(rule.local_suffix):
        return True
    return base.startswith(tuple(rule.local_prefixes(namespace, domain)))


def _shown(text: str) -> str:
    """A name as an error shows it: quoted, escaped and cut, since it may be hostile and long."""
    return repr(text if len(text) <= 200 else text[:200] + "…")

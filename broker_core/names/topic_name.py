"""The name of a topic: ``domain://tenant/namespace/local``, by the rules of Pulsar's ``TopicName``.

Listings have one domain or both, by their mode. A partition is a topic whose local name ends in ``-partition-N`` with
a canonical ``N``. System topics, which brokers keep for themselves and hide from listings, are those of Pulsar's
``SystemTopicNames``.
"""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Self

from broker_core.errors import InvalidName
from broker_core.immutable import seal_value
from broker_core.names.namespace_name import NamespaceName
from broker_core.redaction import quoted

__all__ = [
    "DOMAINS",
    "MAX_NAME_BYTES",
    "MAX_PARTITION_INDEX",
    "NON_PERSISTENT",
    "PARTITION_SUFFIX",
    "PERSISTENT",
    "Mode",
    "SystemTopics",
    "TopicName",
    "check_local_name",
    "is_system_topic",
    "partition_index",
    "partition_name",
    "partitioned_local_name",
    "system_topics_rule",
    "topic_in_namespace",
]

#: A name longer than this (UTF-8 bytes) is refused: the metadata store of a real broker could not hold it, and the
#: length of a pre-encoded name must stay small and known.
MAX_NAME_BYTES: Final = 32_767

PERSISTENT: Final = "persistent"
NON_PERSISTENT: Final = "non-persistent"
DOMAINS: Final = (PERSISTENT, NON_PERSISTENT)


class Mode(enum.IntEnum):
    """The domains that a listing has; the numbers are those of ``CommandGetTopicsOfNamespace.Mode``."""

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
        """Whether a listing of this mode has topics of a domain."""
        if self is Mode.ALL:
            return domain in DOMAINS
        return domain == (PERSISTENT if self is Mode.PERSISTENT else NON_PERSISTENT)


PARTITION_SUFFIX: Final = "-partition-"
MAX_PARTITION_INDEX: Final = 2**31 - 1  # partitions are counted in a Java int
_CANONICAL_INDEX = re.compile(r"0|[1-9][0-9]*", re.ASCII)


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


def partition_name(topic: str, index: int) -> str:
    """The name of a topic's partition, full or local as the topic's own."""
    return f"{topic}{PARTITION_SUFFIX}{index}"


def partitioned_local_name(local: str) -> str:
    """The local name without its partition suffix, if it has one."""
    return local[: local.rindex(PARTITION_SUFFIX)] if partition_index(local) >= 0 else local


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


@dataclass(frozen=True, slots=True)
class SystemTopics:
    """The rule for system topics, for single names and for columns of names."""

    local_names: frozenset[str]
    local_suffix: str
    name_prefixes: tuple[str, ...]

    mark: str
    """A text in each of these local names, by which a column without any is quickly recognised; it may be empty."""

    def local_prefixes(self, namespace: NamespaceName, domain: str) -> list[str]:
        """The prefixes of local names of a namespace that are system topics there; an empty prefix means all."""
        return list(_local_prefixes(self.name_prefixes, namespace, domain))


def system_topics_rule() -> SystemTopics:
    """The current rule."""
    return _rule(SYSTEM_LOCAL_NAMES, SYSTEM_LOCAL_SUFFIX, SYSTEM_NAME_PREFIXES)


@lru_cache(maxsize=4)
def _rule(local_names: frozenset[str], local_suffix: str, name_prefixes: tuple[str, ...]) -> SystemTopics:
    mark = "__" if all("__" in name for name in (*local_names, local_suffix)) else ""
    return SystemTopics(local_names, local_suffix, name_prefixes, mark)


def is_system_topic(domain: str, namespace: NamespaceName, local: str) -> bool:
    """Whether a name is a system topic, or a partition of one."""
    rule = system_topics_rule()
    prefixes = _local_prefixes(rule.name_prefixes, namespace, domain)
    if rule.mark not in local and not prefixes:  # the usual case
        return False
    base = partitioned_local_name(local)
    return base in rule.local_names or base.endswith(rule.local_suffix) or base.startswith(prefixes)


@lru_cache(maxsize=256)
def _local_prefixes(prefixes: tuple[str, ...], namespace: NamespaceName, domain: str) -> tuple[str, ...]:
    own = f"{domain}://{namespace}/"
    return tuple(
        prefix.removeprefix(own) if prefix.startswith(own) else ""
        for prefix in prefixes
        if prefix.startswith(own) or own.startswith(prefix)
    )


@dataclass(frozen=True, slots=True, order=True, init=False)
class TopicName:
    """One topic; ``str()`` is its full name ``domain://tenant/namespace/local``. Building one checks all parts."""

    domain: str
    namespace: NamespaceName
    local: str

    def __new__(cls, domain: str, namespace: NamespaceName, local: str) -> Self:
        domain, local = str.__str__(domain), str.__str__(local)
        if domain not in DOMAINS:
            raise InvalidName(f"Invalid topic domain {quoted(domain)}: one of persistent, non-persistent")
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
            raise InvalidName(f"Invalid topic name {quoted(text)}: expected domain://tenant/namespace/topic")
        return cls(domain, NamespaceName(parts[0], parts[1]), parts[2])

    def __str__(self) -> str:
        return f"{self.domain}://{self.namespace}/{self.local}"

    @property
    def partition(self) -> int:
        """The index of the partition that this name is, or -1."""
        return partition_index(self.local)

    @property
    def partitioned_name(self) -> TopicName:
        """The topic that this name is a partition of; the name itself if it is not a partition."""
        if self.partition < 0:
            return self
        return TopicName(self.domain, self.namespace, partitioned_local_name(self.local))

    @staticmethod
    def split_local(local: str) -> tuple[str, int]:
        """The topic's local name and the index of the partition (-1: none) in a listed local name.

        ``orders-partition-3`` is ``("orders", 3)``; see :func:`partition_index` for valid indices.
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
        raise InvalidName(f"Invalid topic name {quoted(local)}: a local name has no '/'")
    if "\0" in local:
        raise InvalidName(f"Invalid topic name {quoted(local)}: a local name has no NUL character")
    try:
        size = len(local.encode())
    except UnicodeEncodeError:
        raise InvalidName(
            f"Invalid topic name {quoted(local)}: it is not valid Unicode (a lone surrogate)"
        ) from None
    if size > MAX_NAME_BYTES:
        raise InvalidName(f"Invalid topic name {quoted(local)}: {size} bytes, at most {MAX_NAME_BYTES}")


def topic_in_namespace(namespace: NamespaceName, text: str) -> TopicName:
    """The topic of a local or full name in a namespace; raises :exc:`~broker_core.errors.InvalidName`."""
    if "/" not in text:
        return TopicName(PERSISTENT, namespace, text)
    if "://" not in text:
        expected = "expected domain://tenant/namespace/topic, or a local name, in which a '/' is written %2F"
        raise InvalidName(f"Invalid topic name {quoted(text)}: {expected}")
    topic = TopicName.parse(text)
    if topic.namespace != namespace:
        raise InvalidName(f"Topic {quoted(text)} is not in namespace {namespace}")
    return topic

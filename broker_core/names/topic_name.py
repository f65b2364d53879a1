"""The name of a topic: ``domain://tenant/namespace/local``, by the rules of Pulsar's ``TopicName``.

Listings have one domain or both, by their mode.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Final, Self

from broker_core.errors import InvalidName
from broker_core.immutable import seal_value
from broker_core.names.namespace_name import NamespaceName
from broker_core.names.partitions import partition_index, partitioned_local_name
from broker_core.names.system_topics import is_system_topic
from broker_core.redaction import quoted

__all__ = [
    "DOMAINS",
    "MAX_NAME_BYTES",
    "NON_PERSISTENT",
    "PERSISTENT",
    "Mode",
    "TopicName",
    "check_local_name",
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

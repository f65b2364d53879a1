"""System topics, which brokers keep for themselves and hide from listings: those of Pulsar's ``SystemTopicNames``."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from broker_core.names.namespace_name import NamespaceName
from broker_core.names.partitions import partitioned_local_name

__all__ = ["SystemTopics", "is_system_topic", "system_topics_rule"]

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

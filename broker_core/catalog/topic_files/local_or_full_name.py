"""Names of topics as people and files give them: local ones, or full ones of a known namespace."""

from __future__ import annotations

from broker_core.errors import InvalidName
from broker_core.names import PERSISTENT, NamespaceName, TopicName
from broker_core.redaction import quoted

__all__ = ["topic_in_namespace"]


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

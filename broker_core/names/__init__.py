"""Names of namespaces and topics, one at a time and strictly.

The rules are Pulsar's own (``NamespaceName``, ``TopicName``, ``NamedEntity``, ``SystemTopicNames`` of the
broker, 5.0): a namespace is ``tenant/namespace`` of ``[-=:.\\w]`` (ASCII), a topic is
``domain://tenant/namespace/local``, and a partition is a topic whose local name ends in ``-partition-N`` with a
canonical ``N``. For whole columns of names see :mod:`broker_core.names.name_columns`.
"""

from broker_core.names.domain import DOMAINS, NON_PERSISTENT, PERSISTENT
from broker_core.names.mode import Mode
from broker_core.names.namespace_name import NamespaceName
from broker_core.names.topic_name import MAX_NAME_BYTES, TopicName

__all__ = [
    "DOMAINS",
    "MAX_NAME_BYTES",
    "NON_PERSISTENT",
    "PERSISTENT",
    "Mode",
    "NamespaceName",
    "TopicName",
]

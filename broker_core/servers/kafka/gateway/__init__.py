"""The handlers of an admin gateway before a Kafka cluster: relays, joined answers, refusals, and its nodes."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from broker_core.servers.kafka.apis.api_versions import api_versions_row
from broker_core.servers.kafka.apis.list_topics import LIST_TOPICS_ROW
from broker_core.servers.kafka.apis.sasl import SASL_ROWS
from broker_core.servers.kafka.gateway.changes import CHANGE_ROWS
from broker_core.servers.kafka.gateway.nodes import NODE_ROWS
from broker_core.servers.kafka.gateway.reads import READ_ROWS
from broker_core.servers.kafka.gateway.refused_produce_and_fetch import REFUSAL_ROWS
from broker_core.servers.kafka.requests.call import HandlerRow
from broker_core.servers.kafka.requests.paged_requests import with_pages

__all__ = ["GATEWAY_HANDLERS"]

_ROWS: Final = (
    api_versions_row(lambda: GATEWAY_HANDLERS.values()),  # noqa: PLW0108 - it is made below
    *NODE_ROWS,
    LIST_TOPICS_ROW,
    *READ_ROWS,
    *CHANGE_ROWS,
    *REFUSAL_ROWS,
    *SASL_ROWS,
)

#: The handlers by the key of their API.
GATEWAY_HANDLERS: Final[Mapping[int, HandlerRow]] = MappingProxyType(
    {row.api.key: with_pages(row) for row in _ROWS}
)

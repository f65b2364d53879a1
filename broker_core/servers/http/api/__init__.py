"""The HTTP API below /v1: its operations, each declared beside its handler."""

from __future__ import annotations

from collections.abc import Sequence

from broker_core.servers.http.api import (
    held_listings,
    namespaces,
    screens,
    server_clients,
    server_state,
    show_asker,
    topic_by_id,
    topics,
)
from broker_core.servers.http.api.access import kafka_acls, kafka_users
from broker_core.servers.http.api.api import Admit, HttpApi
from broker_core.servers.http.api.cross_origin import WebPages
from broker_core.servers.http.api.openapi import openapi_operation
from broker_core.servers.http.api.operation import HttpOperation
from broker_core.servers.http.api.screens import ScreenObject
from broker_core.servers.http.api.services import ApiServices, CheckResult, HttpMetrics
from broker_core.servers.http.api.topics import property_values
from broker_core.servers.http.api.writes import change_topic, import_topics

__all__ = [
    "Admit",
    "ApiServices",
    "CheckResult",
    "HttpApi",
    "HttpMetrics",
    "ScreenObject",
    "WebPages",
    "v1_api",
]


def v1_api(services: ApiServices, admit: Admit, version: str, shown: Sequence[ScreenObject] = ()) -> HttpApi:
    """The API of a server of this version. ``admit`` authenticates clients; ``shown`` are the screens of plugins."""
    operations: list[HttpOperation] = [
        *topics.operations(services),
        *property_values.operations(services),
        *change_topic.operations(services),
        *import_topics.operations(services),
        *namespaces.operations(services),
        *topic_by_id.operations(services),
        *held_listings.operations(services),
        *server_clients.operations(services),
        *server_state.operations(services),
        *show_asker.operations(services, version),
        *screens.operations(services, list(shown)),
        *kafka_users.operations(),
        *kafka_acls.operations(),
    ]
    document = openapi_operation(operations, version)
    return HttpApi("/v1/", [*operations, document], services, admit)

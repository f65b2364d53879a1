"""Namespaces over HTTP: the list of them, one topic by its name, changes, and how a listing comes about."""

from __future__ import annotations

from broker_core.servers.http.api.namespaces import (
    explain_listing,
    list_namespaces,
    show_namespace,
    show_topic,
    topic_changes,
    topic_configs,
    topic_history,
    why_not_listed,
)
from broker_core.servers.http.api.operation import HttpOperation
from broker_core.servers.http.api.services import ApiServices

__all__ = ["operations"]


def operations(services: ApiServices) -> list[HttpOperation]:
    """The operations of this package."""
    return [
        *list_namespaces.operations(services),
        *show_namespace.operations(services),
        *show_topic.operations(services),
        *topic_configs.operations(services),
        *topic_changes.operations(services),
        *topic_history.operations(services),
        *explain_listing.operations(services),
        *why_not_listed.operations(services),
    ]

"""The listing of a namespace over HTTP: ``GET /v1/namespaces/{tenant}/{namespace}/topics``."""

from __future__ import annotations

from broker_core.servers.http.api.topics.list_topics import operations

__all__ = ["operations"]

"""The use cases of all transports: a server decodes a question, asks one of these, and encodes its answer."""

from __future__ import annotations

from broker_core.service.catalog import Catalog

__all__ = ["Catalog"]

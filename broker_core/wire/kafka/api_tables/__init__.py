"""The APIs by key: one module for each API, or for a few that belong together; each has a row here."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from broker_core.wire.kafka.api import Api
from broker_core.wire.kafka.api_tables.api_versions import API_VERSIONS
from broker_core.wire.kafka.api_tables.metadata import METADATA

__all__ = ["APIS"]

APIS: Final[Mapping[int, Api]] = MappingProxyType(
    {
        api.key: api
        for api in (
            API_VERSIONS,
            METADATA,
        )
    }
)

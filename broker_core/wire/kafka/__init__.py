"""Kafka's protocol without sockets: values, messages by API and version, headers, frames.

Written after Kafka's message definitions (4.3) and KIP-482; docs/reference/kafka.md lists the APIs.
"""

from __future__ import annotations

from broker_core.wire.kafka.api import Api
from broker_core.wire.kafka.api_tables import APIS
from broker_core.wire.kafka.api_tables.api_versions import API_VERSIONS
from broker_core.wire.kafka.api_tables.metadata import METADATA, NOT_ASKED
from broker_core.wire.kafka.error_codes import ErrorCode
from broker_core.wire.kafka.fields import ZERO_ID, Fields
from broker_core.wire.kafka.frame_splitter import FrameSplitter
from broker_core.wire.kafka.headers import (
    RequestHeader,
    read_header,
    read_response,
    request_frame,
    response_frame,
)
from broker_core.wire.kafka.reader import MalformedMessage, Reader
from broker_core.wire.kafka.writer import Buffer, Encoded

__all__ = [
    "APIS",
    "API_VERSIONS",
    "METADATA",
    "NOT_ASKED",
    "ZERO_ID",
    "Api",
    "Buffer",
    "Encoded",
    "ErrorCode",
    "Fields",
    "FrameSplitter",
    "MalformedMessage",
    "Reader",
    "RequestHeader",
    "read_header",
    "read_response",
    "request_frame",
    "response_frame",
]

"""Kafka's protocol without sockets: values, messages by API and version, headers, frames.

The messages follow Kafka's own definitions, encoded by KIP-482; docs/reference/kafka.md lists the APIs.
"""

from __future__ import annotations

from broker_core.wire.kafka import api_tables
from broker_core.wire.kafka.api import Api
from broker_core.wire.kafka.api_tables import *  # noqa: F403 - scripts/kafka_tables.py names them
from broker_core.wire.kafka.cursor_order import Order, order_of, ordered
from broker_core.wire.kafka.error_codes import MESSAGES, ErrorCode, error_name
from broker_core.wire.kafka.fields import ZERO_ID, Fields, Struct
from broker_core.wire.kafka.frames import (
    MAX_REQUEST,
    MAX_REQUEST_BEFORE_LOGIN,
    FrameSplitter,
    RequestHeader,
    read_header,
    read_response,
    request_frame,
    response_frame,
)
from broker_core.wire.kafka.known_apis import APIS, LIST_TOPICS, NOT_REQUESTED
from broker_core.wire.kafka.raw_rows import RawRows, has_rows, read_raw_request, read_raw_response
from broker_core.wire.kafka.reader import MalformedMessage, Reader
from broker_core.wire.kafka.row_scan import RawPath
from broker_core.wire.kafka.value_checks import fault_of
from broker_core.wire.kafka.writer import Buffer, Encoded, EncodedRows, Numbered, Writer

__all__ = [
    "APIS",
    "LIST_TOPICS",
    "MAX_REQUEST",
    "MAX_REQUEST_BEFORE_LOGIN",
    "MESSAGES",
    "NOT_REQUESTED",
    "ZERO_ID",
    "Api",
    "Buffer",
    "Encoded",
    "EncodedRows",
    "ErrorCode",
    "Fields",
    "FrameSplitter",
    "MalformedMessage",
    "Numbered",
    "Order",
    "RawPath",
    "RawRows",
    "Reader",
    "RequestHeader",
    "Struct",
    "Writer",
    "error_name",
    "fault_of",
    "has_rows",
    "order_of",
    "ordered",
    "read_header",
    "read_raw_request",
    "read_raw_response",
    "read_response",
    "request_frame",
    "response_frame",
]
__all__ += api_tables.__all__

"""Pulsar's binary protocol, sans-I/O: bytes to frames to commands, and back.

:mod:`~broker_core.wire.pulsar.frames` cuts a stream of bytes into commands,
:mod:`~broker_core.wire.pulsar.commands` decodes and
encodes them. The messages (``pulsar_api_pb2``) are generated from ``pulsar_api.proto`` by ``make proto``.
"""

from __future__ import annotations

from broker_core.wire.pulsar.buffered_frame_decoder import BufferedFrameDecoder
from broker_core.wire.pulsar.frames import (
    DEFAULT_MAX_MESSAGE_SIZE,
    HEADER_SIZE,
    MAX_COMMAND_SIZE,
    FrameDecoder,
    FrameError,
    frame,
    frame_limit,
)
from broker_core.wire.pulsar.large_commands import LARGE, TooManyElements, decode_large
from broker_core.wire.pulsar.pulsar_api_pb2 import (
    BaseCommand,
    CommandConnected,
    CommandGetSchemaResponse,
    CommandGetTopicsOfNamespace,
    CommandLookupTopicResponse,
    CommandPartitionedTopicMetadataResponse,
    FeatureFlags,
    KeyValue,
)

__all__ = [
    "DEFAULT_MAX_MESSAGE_SIZE",
    "HEADER_SIZE",
    "LARGE",
    "MAX_COMMAND_SIZE",
    "BaseCommand",
    "BufferedFrameDecoder",
    "CommandConnected",
    "CommandGetSchemaResponse",
    "CommandGetTopicsOfNamespace",
    "CommandLookupTopicResponse",
    "CommandPartitionedTopicMetadataResponse",
    "FeatureFlags",
    "FrameDecoder",
    "FrameError",
    "KeyValue",
    "TooManyElements",
    "decode_large",
    "frame",
    "frame_limit",
]

"""Pulsar's binary protocol, sans-I/O: bytes to frames to commands, and back.

:mod:`~broker_core.wire.pulsar.frames` cuts a stream of bytes into commands,
:mod:`~broker_core.wire.pulsar.commands` decodes and encodes them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_core.lazy_exports import lazy_exports
from broker_core.wire.pulsar.commands import WARNING
from broker_core.wire.pulsar.frames import (
    HEADER_SIZE,
    MAX_COMMAND_SIZE,
    BufferedFrameDecoder,
    FrameDecoder,
    FrameError,
    frame,
    frame_limit,
)
from broker_core.wire.pulsar.lookup_commands import LOOKUP_COMMANDS, MOST_PARTITIONS, LookupCommand
from broker_core.wire.pulsar.messages.pulsar_api_pb2 import (
    BaseCommand,
    CommandConnect,
    CommandConnected,
    CommandGetTopicsOfNamespace,
    CommandLookupTopicResponse,
    CommandPartitionedTopicMetadataResponse,
    CommandWatchTopicList,
    CommandWatchTopicUpdate,
    FeatureFlags,
    KeyValue,
)

if TYPE_CHECKING:
    from broker_core.wire.pulsar.large_commands import LARGE, TooManyElements, decode_large
    from broker_core.wire.pulsar.watch_commands import (
        OTHER_TAG,
        watch_success_head,
        watch_unchanged,
        watch_update,
        watch_update_body,
    )

__all__ = [
    "HEADER_SIZE",
    "LARGE",
    "LOOKUP_COMMANDS",
    "MAX_COMMAND_SIZE",
    "MOST_PARTITIONS",
    "OTHER_TAG",
    "WARNING",
    "BaseCommand",
    "BufferedFrameDecoder",
    "CommandConnect",
    "CommandConnected",
    "CommandGetTopicsOfNamespace",
    "CommandLookupTopicResponse",
    "CommandPartitionedTopicMetadataResponse",
    "CommandWatchTopicList",
    "CommandWatchTopicUpdate",
    "FeatureFlags",
    "FrameDecoder",
    "FrameError",
    "KeyValue",
    "LookupCommand",
    "TooManyElements",
    "decode_large",
    "frame",
    "frame_limit",
    "watch_success_head",
    "watch_unchanged",
    "watch_update",
    "watch_update_body",
]

# Large commands, for servers only, need protobuf's descriptors: clients start without them.
__getattr__ = lazy_exports(
    __name__,
    dict.fromkeys(("LARGE", "TooManyElements", "decode_large"), ".large_commands")
    | dict.fromkeys(
        ("OTHER_TAG", "watch_success_head", "watch_unchanged", "watch_update", "watch_update_body"),
        ".watch_commands",
    ),
)

"""The answer to WATCH_TOPIC_LIST, of which the topics are not read: a listing has them.

It names all topics of a namespace unless the client has their hash. To decode a million of them takes a second, in one
piece and with the interpreter locked; the needed fields stand at its beginning and at its end.
"""

from __future__ import annotations

import re
from typing import Final

from broker_core.listing import MalformedFields, read_varint
from broker_core.wire.pulsar import BaseCommand, commands

__all__ = ["WATCH_SUCCESS", "watch_success"]

#: The beginning of an encoded answer: its type.
WATCH_SUCCESS: Final = b"\x08\x41"
_HEAD: Final = b"\x08\x41\x8a\x04"
#: Bytes of an answer that is decoded as it is.
_SMALL: Final = 64 * 1024
#: The last field of it, as every encoder orders them: a hash of eight digits.
_TAIL: Final = re.compile(rb"\x22\x08([0-9a-f]{8})")


def watch_success(command: bytes | memoryview) -> BaseCommand:
    """The answer without its topics. Raises :exc:`~broker_core.wire.pulsar.FrameError` for any other command."""
    data = memoryview(command)
    tail = _TAIL.fullmatch(data[-10:])
    if len(data) > _SMALL and bytes(data[:4]) == _HEAD and tail is not None:
        try:
            size, start = read_varint(data, 4)
            if start + size == len(data) and data[start] == 0x08:
                request_id, position = read_varint(data, start + 1)
                if data[position] == 0x10:
                    watcher_id, _ = read_varint(data, position + 1)
                    made = BaseCommand(type=BaseCommand.WATCH_TOPIC_LIST_SUCCESS)
                    made.watchTopicListSuccess.request_id = request_id
                    made.watchTopicListSuccess.watcher_id = watcher_id
                    made.watchTopicListSuccess.topics_hash = tail[1].decode()
                    return made
        except (IndexError, MalformedFields):
            pass  # legal perhaps, in another order
    return commands.decode(bytes(command))

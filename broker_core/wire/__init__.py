"""Pulsar's binary protocol, sans-I/O: bytes to frames to commands, and back.

:mod:`~broker_core.wire.frames` cuts a stream of bytes into commands, :mod:`~broker_core.wire.commands` decodes and
encodes them. The messages (``pulsar_api_pb2``) are generated from ``pulsar_api.proto`` by ``make proto``.
"""

from __future__ import annotations

from broker_core.wire.frame_buffer import FrameBuffer
from broker_core.wire.frames import FrameDecoder, FrameError, frame
from broker_core.wire.pulsar_api_pb2 import BaseCommand

__all__ = ["BaseCommand", "FrameBuffer", "FrameDecoder", "FrameError", "frame"]

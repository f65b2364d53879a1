"""One client's connection, whatever its protocol: commands in turns, answers as fast as they are read."""

from __future__ import annotations

from broker_core.servers.connection.client_connection import ClientConnection
from broker_core.servers.connection.command_handler import (
    Awaited,
    Closing,
    FrameSender,
    OutgoingAnswer,
)
from broker_core.servers.connection.connection_server import ConnectionServer
from broker_core.servers.connection.large_answers import LargeAnswer, LargeAnswers
from broker_core.servers.connection.quota_job import QuotaJob
from broker_core.servers.connection.reader_pace import LEAST_PIECE, ReaderPace, piece_for

__all__ = [
    "LEAST_PIECE",
    "Awaited",
    "ClientConnection",
    "Closing",
    "ConnectionServer",
    "FrameSender",
    "LargeAnswer",
    "LargeAnswers",
    "OutgoingAnswer",
    "QuotaJob",
    "ReaderPace",
    "piece_for",
]

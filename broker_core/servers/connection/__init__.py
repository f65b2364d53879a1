"""One client's connection, whatever its protocol: commands in turns, answers as fast as they are read."""

from __future__ import annotations

from broker_core.servers.connection.answer_writer import OutgoingAnswer
from broker_core.servers.connection.client_connection import ClientConnection
from broker_core.servers.connection.command_handler import (
    Awaited,
    Closing,
    FrameSender,
)
from broker_core.servers.connection.connection_server import ConnectionServer
from broker_core.servers.connection.large_answers import (
    LEAST_PIECE,
    LargeAnswer,
    LargeAnswers,
    ReaderPace,
    piece_for,
)
from broker_core.servers.connection.quota_job import QuotaJob

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

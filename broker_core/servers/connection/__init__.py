"""One client's connection, whatever its protocol: commands in turns, answers as fast as they are read."""

from __future__ import annotations

from broker_core.servers.connection.answer_writer import AnswerWriter
from broker_core.servers.connection.command_queue import CommandQueue

__all__ = ["AnswerWriter", "CommandQueue"]

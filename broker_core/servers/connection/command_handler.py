"""The interface of a protocol to its connections: a handler of commands that does no input and no output.

The connection (:mod:`~broker_core.servers.connection.client_connection`) has the socket, the timers and the tasks. It
gives each command to the handler, as bytes, and does what the handler returns: write these bytes, do this job, or
close. So a handler is tested without a socket.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from broker_core.memory import PermitBudget
from broker_core.servers.connection.answer_writer import OutgoingAnswer

__all__ = ["Awaited", "Closing", "CommandHandler", "CommandSplitter", "FrameSender", "Job"]


@dataclass(frozen=True, slots=True)
class Closing:
    """The connection is to be closed. ``reason`` is a label of the metrics, ``event`` the text of the log (``None``: it
    is logged already).

    The client gets to read ``last`` before, if given. What it sends meanwhile is not looked at.
    """

    reason: str
    event: str | None
    values: Mapping[str, object] = field(default_factory=dict)
    last: bytes = b""


@dataclass(frozen=True, slots=True)
class Awaited:
    """The reply to a command is known later: ``reply`` is called once, and gives it. It takes no place of a request.

    With ``holds``, the commands that follow wait for it. It is cancelled when the client is gone.
    """

    reply: Callable[[], Coroutine[Any, Any, bytes | Closing | None]]
    holds: bool = True


class FrameSender(NamedTuple):
    """Functions that send to a client without a command of it; no effect if the connection is ending already."""

    #: Sends a small frame, or closes the connection.
    send: Callable[[bytes | Closing], None]
    #: Sends a small frame; false if there is no room for it now.
    push: Callable[[bytes], bool]
    #: Whether there is no room because the client has not read earlier frames.
    has_unread: Callable[[], bool]


class CommandSplitter(Protocol):
    """Cuts the bytes of a client into commands."""

    @property
    def buffered(self) -> int:
        """Bytes held of a frame that is not whole yet."""

    def feed(self, data: bytes, /) -> list[bytes]:
        """The commands that this chunk completes. Its errors end the connection."""


class Job(Protocol):
    """A request that may take time: it needs a place among the requests under way."""

    def small_answer(self) -> bytes | None:
        """The frame of the answer, if it is known already and small."""

    async def answer(self) -> OutgoingAnswer:
        """The answer, whatever its size."""

    def refusal(self, error: Exception) -> bytes | Closing | None:
        """The frame that reports an error to the client, or the end of its connection; ``None`` for an error of this
        server.
        """

    def no_place(self) -> bytes | Closing:
        """The refusal if too many requests are under way."""

    def holds(self, budget: PermitBudget) -> bool:
        """Whether the answer holds memory of this budget while it is written."""

    def release(self) -> None:
        """Give back the permits of the answer; once is enough."""


class CommandHandler(Protocol):
    """The state of one client in its protocol."""

    #: Whether anything has come from the client since it was reset.
    has_received: bool
    #: Whether the server stops: no more requests are taken.
    draining: bool

    @property
    def client(self) -> str:
        """The name that the client's software gives itself, for the log."""

    @property
    def watches(self) -> bool:
        """Whether the client waits for frames without asking for each."""

    def splitter(self) -> CommandSplitter:
        """The splitter of this client's bytes into commands."""

    def handle(self, command: bytes, /) -> bytes | Job | Awaited | Closing | None:
        """The reaction to a command: send a small frame, do a job, wait, close, or nothing."""

    def tick(self, *, quiet: bool) -> bytes | Closing | None:
        """The reaction to the end of a keep-alive interval: ask the client, or give it up.

        ``quiet`` says that no answer is on its way, and that the client is read.
        """

    def has_room(self) -> None:
        """Note that the client has read all waiting bytes."""

    def closed(self) -> None:
        """Note the end of the connection."""

    def is_bad_frame(self, error: Exception, /) -> bool:
        """Whether the client's bytes cannot be understood, rather than this server having failed."""

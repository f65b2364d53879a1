"""What a protocol brings to its connections: a handler of commands that does no input and no output.

The connection (:mod:`~broker_core.servers.connection.client_connection`) has the socket, the timers and the tasks. It
gives each command to the handler, as bytes, and does what the handler says: write these bytes, do this job, or close.
So a handler is tested without a socket.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from broker_core.listing.fields_reader import FieldsReader
from broker_core.memory.permit_budget import PermitBudget

__all__ = ["Awaited", "Closing", "CommandHandler", "FrameSplitter", "Job", "OutgoingAnswer", "Unasked"]


@dataclass(frozen=True, slots=True)
class Closing:
    """The connection is to be closed. ``reason`` is a label of the metrics, ``event`` what the log says (``None``: all
    is said already).

    The client reads ``last`` before, if there is one. Nothing that it sends meanwhile is looked at.
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


class Unasked:
    """Does what a handler says without a command having asked for it; nothing where the connection ends already.

    ``push`` sends a small frame; false: there is no room for it now. ``is_behind`` says whether that is because the
    client has not read what was sent before.
    """

    __slots__ = ("_do", "is_behind", "push")

    def __init__(
        self,
        do: Callable[[bytes | Closing], None],
        push: Callable[[bytes], bool],
        is_behind: Callable[[], bool],
    ) -> None:
        self._do = do
        self.push = push
        self.is_behind = is_behind

    def __call__(self, reply: bytes | Closing) -> None:
        self._do(reply)


@dataclass(frozen=True, slots=True)
class OutgoingAnswer:
    """The frame of an answer in three parts. ``deadline`` (loop time) bounds how long it waits for its turn; for
    ``rest`` seconds after it, nothing more of the client is handled.
    """

    head: bytes
    body: FieldsReader | bytes | memoryview
    tail: bytes
    deadline: float
    rest: float = 0.0

    @property
    def size(self) -> int:
        """Bytes of the frame."""
        body = self.body.left if isinstance(self.body, FieldsReader) else len(self.body)
        return len(self.head) + body + len(self.tail)


class FrameSplitter(Protocol):
    """Cuts what a client sends into commands."""

    @property
    def buffered(self) -> int:
        """Bytes held of a frame that is not whole yet."""

    def feed(self, data: bytes, /) -> list[bytes]:
        """The commands that this chunk completes. What it raises ends the connection."""


class Job(Protocol):
    """A request that may take time: it needs a place among the requests under way."""

    def small_answer(self) -> bytes | None:
        """The frame of the answer, where it is known already and small."""

    async def answer(self) -> OutgoingAnswer:
        """The answer, whatever its size."""

    def refusal(self, error: Exception) -> bytes | Closing | None:
        """What tells the client of an error, or the end of its connection; ``None`` for an error of this server."""

    def no_place(self) -> bytes | Closing:
        """What tells the client that too many requests are under way."""

    def holds(self, budget: PermitBudget) -> bool:
        """Whether the answer holds memory of this budget while it is written."""

    def release(self) -> None:
        """Give back what the answer holds; once is enough."""


class CommandHandler(Protocol):
    """The state of one client in its protocol."""

    #: Set when anything has come from the client.
    heard: bool
    #: Set when the server stops: no more requests are taken.
    draining: bool

    @property
    def client(self) -> str:
        """What the client's software calls itself, for the log."""

    def splitter(self) -> FrameSplitter:
        """What cuts this client's bytes into commands."""

    def handle(self, command: bytes, /) -> bytes | Job | Awaited | Closing | None:
        """What is to be done for a command: send a small frame, do a job, wait, close, or nothing."""

    def tick(self, *, quiet: bool) -> bytes | Closing | None:
        """What is to be done when the interval of the keep-alive is over: ask the client, or give it up.

        ``quiet`` says that no answer is on its way, and that the client is read.
        """

    def has_room(self) -> None:
        """The client has read what waited for it."""

    def closed(self) -> None:
        """The connection is over."""

    def is_bad_frame(self, error: Exception, /) -> bool:
        """Whether the client sent what cannot be understood, rather than this server having failed."""

"""`broker-core list --watch`: the topics that come and go, until Ctrl-C."""

from __future__ import annotations

import asyncio
import os
import stat
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from broker_core.cli.error_line import say
from broker_core.cli.printed_topics import Form, print_change
from broker_core.names import Mode

if TYPE_CHECKING:
    from broker_core.cli.options.given_question import GivenQuestion
    from broker_core.client import LookupClient, TopicListing, WatchReceiver

__all__ = ["watch_topics"]


async def watch_topics(
    client: LookupClient,
    question: GivenQuestion,
    *,
    period: float,
    confirmations: int,
    form: Form,
) -> None:
    """Print ``+ NAME`` for all topics, then for each that comes, and ``- NAME`` for each that goes.

    Errors are printed, and the watch goes on; before the first answer only after temporary errors. Ends when the reader
    of the output has gone.
    """
    from broker_core.client import OperationTimeout, PatternDiscovery

    def says(is_watching: bool) -> None:
        if is_watching:
            say("watching: the server reports each change")
        else:
            say(f"polling: the server reports no changes, and is asked every {period:g} s")

    def failed(error: Exception) -> None:
        if not discovery.answers and not isinstance(error, OperationTimeout):
            raise error
        say(f"{error}; the topics stay as they were")

    fixed = _FixedQuestion(client, question)
    discovery = PatternDiscovery(
        fixed,
        f"persistent://{question.namespace}/.*",
        question.properties,
        period=period,
        confirmations=confirmations,
        mode=question.mode,
        on_error=failed,
        watches=fixed,
        on_watching=says,
    )
    with _ending_with_the_reader(discovery.close):
        async with discovery:
            async for change in discovery:
                print_change("+", change.added.names, form)
                print_change("-", change.removed.names, form)


class _FixedQuestion:
    """A client that asks for the namespace and pattern of a question, or for all topics, whatever it is passed."""

    def __init__(self, client: LookupClient, question: GivenQuestion) -> None:
        self._client = client
        self._question = question

    async def get_topics_under_namespace(
        self,
        namespace: Any,  # noqa: ARG002 - that of the pattern, which is the same
        mode: Mode = Mode.PERSISTENT,
        topics_pattern: str | None = None,  # noqa: ARG002 - of all topics
        topics_hash: str | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> TopicListing:
        return await self._client.get_topics_under_namespace(
            self._question.namespace, mode, self._question.pattern, topics_hash, properties
        )

    async def watch_topics(self, _namespace: Any, _pattern: str, watcher: WatchReceiver) -> bool:
        pattern = self._question.pattern
        return await self._client.watch_topics(
            self._question.namespace, ".*" if pattern is None else pattern, watcher
        )


@contextmanager
def _ending_with_the_reader(end: Any) -> Iterator[None]:
    """Call ``end`` when the reader of our output, a pipe, has gone, which else only a next line would reveal."""
    try:
        descriptor = sys.stdout.fileno()
        is_pipe = stat.S_ISFIFO(os.fstat(descriptor).st_mode)
    except OSError:
        is_pipe, descriptor = False, -1
    if not is_pipe:
        yield
        return
    loop = asyncio.get_running_loop()

    def gone() -> None:
        loop.remove_reader(descriptor)
        end()

    # The end of a pipe that is written to reads as an error once its reader is gone.
    loop.add_reader(descriptor, gone)
    try:
        yield
    finally:
        loop.remove_reader(descriptor)

"""A broker in a thread of this process, for tests of commands that ask a broker."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from broker_core.broker import Broker
from broker_core.settings import Settings

__all__ = ["serving"]


@contextmanager
def serving(settings: Settings) -> Iterator[str]:
    """The service URL of a broker with these settings."""
    started = threading.Event()
    addresses: list[tuple[str, int]] = []
    failures: list[BaseException] = []
    loop = asyncio.new_event_loop()
    done = asyncio.Event()

    async def run() -> None:
        async with Broker(settings) as broker:
            addresses.append(broker.pulsar_address)
            started.set()
            await done.wait()

    def main() -> None:
        try:
            loop.run_until_complete(run())
        except BaseException as error:  # noqa: BLE001 - raised again below
            failures.append(error)
        finally:
            loop.run_until_complete(loop.shutdown_asyncgens())  # with them the threads of the loop end
            loop.run_until_complete(loop.shutdown_default_executor())
            loop.close()
            started.set()

    thread = threading.Thread(target=main, name="broker")
    thread.start()
    started.wait(60)
    try:
        if failures:
            raise failures[0]
        yield "pulsar://{}:{}".format(*addresses[0])
    finally:
        if not loop.is_closed():
            loop.call_soon_threadsafe(done.set)
        thread.join(60)

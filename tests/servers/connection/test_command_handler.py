"""The interface of a protocol's handler; Pulsar's handler follows it (mypy compares them)."""

from __future__ import annotations

from broker_core.servers.connection.command_handler import (
    Closing,
    CommandHandler,
    CommandSplitter,
    Job,
)
from broker_core.servers.pulsar.listing_job import ListingJob, SmallListingJob
from broker_core.wire.pulsar import commands
from tests.support.memory_lister import MemoryLister
from tests.support.pulsar_handlers import talk


async def test_pulsars_handler_splitter_and_jobs_are_what_a_connection_wants() -> None:
    t = talk(MemoryLister(["persistent://t/n/a"]))
    handler: CommandHandler = t.handler
    splitter: CommandSplitter = handler.splitter()
    t.connect()
    (command,) = splitter.feed(commands.get_topics(1, "t/n"))
    job = handler.handle(command)
    assert isinstance(job, ListingJob)
    wanted: Job = job
    assert wanted.small_answer() is not None
    wanted.release()
    job = handler.handle(command)  # the second time
    assert isinstance(job, SmallListingJob)
    wanted = job
    assert wanted.small_answer() is not None


def test_closings_are_plain_values() -> None:
    assert Closing("slow", "peer reads slowly").values == {}

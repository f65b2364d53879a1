"""A lookup: gates first, then the lookup service; every error has the form of its answer."""

from __future__ import annotations

import asyncio

from structlog.testing import capture_logs

from broker_core.errors import ServerError
from broker_core.servers.pulsar.lookup_job import LookupJob
from broker_core.wire.pulsar import commands
from tests.support.pulsar_handlers import Talk, decoded, talk


def job_of(t: Talk, frame: bytes) -> LookupJob:
    t.connect()
    job = t.say(frame)
    assert isinstance(job, LookupJob)
    return job


async def test_the_answer_is_one_frame() -> None:
    begun = asyncio.get_running_loop().time()
    job = job_of(talk(), commands.partitioned_metadata(7, "t/n/x"))
    answer = await job.answer()
    assert (answer.head, answer.tail) == (b"", b"")
    assert begun + 28 <= answer.deadline <= asyncio.get_running_loop().time() + 28
    assert isinstance(answer.body, bytes)
    assert decoded(answer.body).partitionMetadataResponse.request_id == 7


def test_a_bug_is_logged_and_the_client_is_told_its_kind_alone() -> None:
    job = job_of(talk(), commands.get_schema(7, "t/n/x"))
    with capture_logs() as logs:
        answer = decoded(job.refusal(KeyError("secret"))).getSchemaResponse
    assert (answer.error_code, answer.error_message) == (
        ServerError.MetadataError,
        "Internal error: KeyError",
    )
    assert [(each["event"], each["peer"]) for each in logs] == [("lookup failed", "192.0.2.1:4711")]


def test_no_place_closes_no_connection_at_the_client() -> None:
    job = job_of(talk(), commands.lookup(7, "t/n/x"))
    assert decoded(job.no_place()).lookupTopicResponse.error == ServerError.MetadataError


def test_it_holds_nothing() -> None:
    t = talk()
    job = job_of(t, commands.lookup(7, "t/n/x"))
    assert not job.holds(t.pipeline.permits.heap)
    job.release()

"""What real clients asked and a real broker answered goes through the relay as it is, but for what is the relay's."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from broker_core.access.asker import Asker
from broker_core.settings import UpstreamSettings
from broker_core.upstream.pulsar import UpstreamCluster, UpstreamOptions
from broker_core.wire.pulsar import HEADER_SIZE, LOOKUP_COMMANDS, commands
from broker_core.wire.pulsar.messages.pulsar_api_pb2 import BaseCommand
from tests.support.scripted_server import Peer, ScriptedServer
from tests.support.vectors import frames


@dataclass
class Exchange:
    question: BaseCommand
    answer: BaseCommand


def recorded(client: str) -> list[Exchange]:
    """The lookups of a client with their answers, in the order of the answers."""
    open_questions: dict[tuple[int, int, int], BaseCommand] = {}
    found = []
    for line in frames(client):
        if "hex" not in line:
            continue
        command = commands.decode(bytes.fromhex(line["hex"]))
        request_id = commands.request_id_of(command)
        if request_id is None:
            continue
        row = LOOKUP_COMMANDS.get(command.type)
        if row is not None:
            open_questions[line["conn"], row.response, request_id] = command
        else:
            question = open_questions.pop((line["conn"], command.type, request_id), None)
            if question is not None:
                found.append(Exchange(question, command))
    return found


@pytest.mark.parametrize("client", ["java", "go", "python"])
async def test_recorded_lookups_are_relayed_as_they_are(client: str) -> None:
    exchanges = recorded(client)
    assert {BaseCommand.LOOKUP, BaseCommand.PARTITIONED_METADATA} <= {
        each.question.type for each in exchanges
    }
    asked: list[BaseCommand] = []
    answers: list[BaseCommand] = []

    async def script(peer: Peer, command: BaseCommand) -> None:
        asked.append(command)
        answer = BaseCommand()
        answer.CopyFrom(answers[-1])
        body = LOOKUP_COMMANDS[command.type].response_body(answer)
        body.request_id = commands.request_id_of(command)
        peer.send(commands.encode(answer))

    async with ScriptedServer(script) as server:
        upstream = UpstreamCluster(UpstreamOptions(UpstreamSettings(service_url=server.url)))
        await upstream.start()
        for each in exchanges:
            answers.append(each.answer)
            frame = await upstream.relay.answer(each.question, Asker(client_version=client))
            told = commands.decode(frame[HEADER_SIZE:])
            expected = BaseCommand()
            expected.CopyFrom(each.answer)
            if expected.type == BaseCommand.LOOKUP_RESPONSE:
                expected.lookupTopicResponse.ClearField("proxy_through_service_url")
            assert told == expected
            sent = asked[-1]
            row = LOOKUP_COMMANDS[sent.type]
            row.request_body(sent).request_id = row.request_body(each.question).request_id
            assert sent == each.question
        assert len(asked) == len(exchanges)
        await upstream.stop()

"""A run: requests from a seed to two servers, one after the other, and what differs."""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from functools import partial
from itertools import groupby, zip_longest
from pathlib import Path
from random import Random
from typing import Any, Final
from urllib.parse import quote

import pyarrow as pa
from google.protobuf.message import DecodeError

from broker_core.wire.kafka import Api, MalformedMessage, read_response
from broker_core.wire.pulsar import BaseCommand, commands
from tests.differential.clients import Clients
from tests.differential.comparison import Pairs, Token, ids_in
from tests.differential.drawing import Draw, Hole
from tests.differential.http_requests import HttpRequest, admin_request, v1_request
from tests.differential.kafka_requests import kafka_frame, kafka_request
from tests.differential.named import fragments_of
from tests.differential.pulsar_requests import pulsar_frame
from tests.differential.world import PERSONAS, Persona
from tests.support.eventually import eventually
from tests.support.served import Served

__all__ = ["ROADS", "Difference", "Result", "run"]

ROADS: Final = {"pulsar": 30, "v1": 28, "admin": 15, "kafka": 22, "damaged": 3, "login": 2}
_WEIGHTS: Final = (7, 4, 4, 1, 1, 1)
#: A client of which no lines are compared.
_LEVELLING: Final = "levelling"
_AUDIT: Final = "broker_core.audit"
_ARROW: Final = b"application/vnd.apache.arrow.stream"
_TOPIC_ID: Final = re.compile(rb'"topic_id": ?"([A-Za-z0-9_-]{22})"')


@dataclass(frozen=True, slots=True)
class Difference:
    """A request with two answers, or with two lots of audit lines."""

    number: int
    request: str
    first: bytes
    second: bytes


@dataclass(slots=True)
class Result:
    """``answers`` counts the requests by transport and by what came of them, ``named`` what fragments name."""

    answers: Counter[tuple[str, str]] = field(default_factory=Counter)
    named: Counter[str] = field(default_factory=Counter)
    differences: list[Difference] = field(default_factory=list)
    audited: int = 0


async def run(
    servers: tuple[Served, Served],
    requests: int,
    seed: int,
    *,
    only: Iterable[str] = ROADS,
    found: Callable[[Difference], None] = lambda _: None,
) -> Result:
    """Ask both servers; ``found`` is called with each difference at once. The audit lines are compared at the end."""
    roads = [road for road in ROADS if road in set(only)]
    async with Clients(servers[0]) as first, Clients(servers[1]) as second:
        asking = _Run((first, second), Random(seed), found)
        await asking.learn()
        for number in range(1, requests + 1):
            road = asking.random.choices(roads, [ROADS[road] for road in roads])[0]
            await asking.ask(number, road)
    asking.compare_audits(*(_audit_lines(server.log) for server in servers))
    return asking.result


class _Run:
    def __init__(
        self, clients: tuple[Clients, Clients], random: Random, found: Callable[[Difference], None]
    ) -> None:
        self.random = random
        self.result = Result()
        self._clients = clients
        self._found = found
        self._pairs = Pairs()
        self._requests: dict[str, tuple[int, str, list[Hole]]] = {}

    async def learn(self) -> None:
        """Note the ids of topics that both servers begin with."""
        for namespace in ("public/default", "acme/shop"):
            target = f"/v1/namespaces/{namespace}/topics?detail=topic_id"
            asking = partial(_asked, PERSONAS[0], HttpRequest("GET", target))
            self._learn_from_http(*await self._both(asking))

    async def ask(self, number: int, road: str) -> None:
        """Draw a request for both, ask, and compare."""
        persona = self.random.choices(PERSONAS, _WEIGHTS)[0]
        draw = Draw(self.random, self._pairs)
        client = f"differential-{number}"
        words: Callable[[bytes], str] = _text
        match road:
            case "pulsar":
                words = _command
                frame = pulsar_frame(draw, number)
                said = str(BaseCommand.FromString(frame[8:]))
                first, second = await self._both(
                    lambda each, at: each.pulsar(persona, _for(at, frame, draw.holes))
                )
                if first == second and frame[8:10] == b"\x08\x20":
                    self._learn_from_listing(BaseCommand.FromString(frame[8:]), first)
            case "kafka":
                api, version = kafka_request(draw)
                frame, said = kafka_frame(draw, api, version, number, client)
                first, second = await self._both(
                    lambda each, at: each.kafka(persona, _for(at, frame, draw.holes))
                )
                words = partial(_fields, api, version)
                if api.name != "DeleteTopics":
                    ids = _ids(api, version, first, second)
                    first, second = self._pairs.translated_ids(first, second, ids)
                elif words(first) == words(_in_words_of_first(second, draw.holes)):
                    second = first  # in the order of ids, which are others
            case "damaged" | "login":
                first, second, said, words = await self._alone(road, persona, draw, number)
            case _:
                request = (v1_request if road == "v1" else admin_request)(draw)
                said = str(request)
                client = client if request.method != "GET" else "differential"
                answers = await self._both(
                    lambda each, at: each.http(persona, _request_for(at, request, draw.holes), client)
                )
                targets = request.target, _request_for(1, request, draw.holes).target
                self._learn_from_http(*answers, targets=targets)
                if request.method == "DELETE" and [head[:1] for head, _ in answers] in (
                    [b"4", b"2"],
                    [b"5", b"2"],
                ):
                    await self._level(client)
                first, second = (b"\n".join(answer) for answer in answers)
        self._requests[client] = number, f"{road} as {persona.role}: {said}", draw.holes
        self._compare(*self._requests[client], first, second, words)
        self.result.answers[road, _outcome(road, first)] += 1

    async def _alone(
        self, road: str, persona: Persona, draw: Draw, number: int
    ) -> tuple[bytes, bytes, str, Callable[[bytes], str]]:
        """A damaged message, or a login with a wrong password; each login from an address of its own.

        With the answers come the request in words, and what puts answers to it into words.
        """
        words: Callable[[bytes], str] = _text
        over = draw.of(("pulsar", "kafka", "http") if road == "damaged" else ("pulsar", "kafka"))
        options: dict[str, Any] = {}
        data = b""
        asked: tuple[Api, int] | None = None
        if road == "login":
            persona = draw.of([each for each in PERSONAS if each.method == "basic"])
            options = {
                "source": f"127.{1 + number // 62500}.{number // 250 % 250}.{1 + number % 250}",
                "password": "wrong",
            }
        elif over == "pulsar":
            words = partial(_framed, _command)
            data = draw.damaged(pulsar_frame(draw, number))
        elif over == "kafka":
            asked = kafka_request(draw)
            words = partial(_framed, partial(_fields, *asked))
            data = draw.damaged(kafka_frame(draw, *asked, number, "differential")[0])
        else:
            request = v1_request(draw)
            lines = [f"{request.method} {request.target} HTTP/1.1", "Host: localhost", "Connection: close"]
            data = draw.damaged("\r\n".join([*lines, "", ""]).encode())
        answers = await self._both(
            lambda each, at: each.alone(over, persona, _for(at, data, draw.holes), **options)
        )
        first, second = (said + rest for said, rest in answers)
        if over == "http":
            first, second = (re.sub(rb"\r\nDate: [^\r]*", b"", each) for each in (first, second))
        elif asked is not None:
            ids = _ids(*asked, *(rest[4:] for _, rest in answers))
            first, second = self._pairs.translated_ids(first, second, ids)
        return first, second, f"{over} {data!r} {options}", words

    async def _level(self, client: str) -> None:
        """Delete what the second server alone has deleted, by a fragment, so that both have the same topics."""
        log = self._clients[1].server.log
        lines = await eventually(lambda: _audit_lines(log).get(client, []))
        namespace, _, local = json.loads(lines[0])["target"].partition("://")[2].rpartition("/")
        target = f"/v1/namespaces/{namespace}/topics/{quote(local, safe='')}"
        await self._clients[0].http(PERSONAS[0], HttpRequest("DELETE", target), _LEVELLING)

    async def _both(self, asking: Callable[[Clients, int], Any]) -> tuple[Any, Any]:
        first, second = await asyncio.gather(*(asking(each, at) for at, each in enumerate(self._clients)))
        return first, second

    def _learn_from_listing(self, asked: BaseCommand, answer: bytes) -> None:
        command = BaseCommand.FromString(answer[4 : 4 + int.from_bytes(answer[:4], "big")])
        if command.type == BaseCommand.GET_TOPICS_OF_NAMESPACE_RESPONSE:
            topics_hash = command.getTopicsOfNamespaceResponse.topics_hash
            self._pairs.note("hash", topics_hash, topics_hash)
            asked.getTopicsOfNamespace.topics_hash = topics_hash
            self._pairs.again.append(asked)

    def _learn_from_http(self, *answers: tuple[bytes, bytes], targets: Token | None = None) -> None:
        heads = [dict(line.split(b": ", 1) for line in head.split(b"\n")[1:]) for head, _ in answers]
        tags = [head.get(b"Etag", b"").decode() for head in heads]
        if all(tags):
            self._pairs.note("etag", *tags)
            if targets is not None:
                self._pairs.tagged.append((targets, (tags[0], tags[1])))
        bodies = [body for _, body in answers]
        if heads[0].get(b"Content-Type") == heads[1].get(b"Content-Type") == _ARROW:
            ids_of_rows = map(_ids_in_arrow, bodies)
        else:
            ids_of_rows = map(_TOPIC_ID.findall, bodies)
        for ids in zip(*ids_of_rows, strict=False):
            self._pairs.learn(*ids)
        values = [_json(body) for body in bodies]
        if all(isinstance(value, dict) for value in values):
            for kind, name in (("cursor", "next"), ("version", "version"), ("hash", "topics_hash")):
                tokens = [value.get(name) for value in values]
                if all(isinstance(token, str) for token in tokens):
                    self._pairs.note(kind, *tokens)

    def _compare(
        self,
        number: int,
        request: str,
        holes: list[Hole],
        first: bytes,
        second: bytes,
        words: Callable[[bytes], str],
    ) -> None:
        first, second = self._pairs.translated(first, _in_words_of_first(second, holes))
        if first == second:
            return
        if named := fragments_of(request, words(first), words(second)):
            self.result.named.update(named)
        else:
            difference = Difference(number, request, first, second)
            self.result.differences.append(difference)
            self._found(difference)

    def compare_audits(self, *logs: dict[str, list[bytes]]) -> None:
        """Compare the audit lines of each request; those of Kafka clients, which name no version, in their order.

        A line that one of them has alone is one difference.
        """
        for client in sorted((logs[0].keys() | logs[1].keys()) - {_LEVELLING}):
            number, request, holes = self._requests.get(client, (0, client, []))
            firsts = _by_id([self._pairs.translated(line, b"")[0] for line in logs[0].get(client, [])])
            seconds = _by_id([self._pairs.translated(b"", line)[1] for line in logs[1].get(client, [])])
            self.result.audited += max(len(firsts), len(seconds))
            for _, low, high, begin, end in SequenceMatcher(None, firsts, seconds, False).get_opcodes():
                for first, second in zip_longest(firsts[low:high], seconds[begin:end], fillvalue=b""):
                    self._compare(number, f"audit line of {request}", holes, first, second, _text)


def _ids_in_arrow(body: bytes) -> list[bytes]:
    table = pa.ipc.open_stream(body).read_all()
    ids = table.column("topic_id").to_pylist() if "topic_id" in table.column_names else []
    return [each.encode() for each in ids if each]


async def _asked(persona: Persona, request: HttpRequest, clients: Clients, at: int) -> tuple[bytes, bytes]:
    return await clients.http(persona, request, "differential")


def _json(body: bytes) -> Any:
    try:
        return json.loads(body)
    except ValueError:
        return None


def _outcome(road: str, answer: bytes) -> str:
    """An answer in a word, to see that a run has all kinds of them."""
    if road == "pulsar" and answer[4:5] == b"\x08":
        command = BaseCommand.FromString(answer[4 : 4 + int.from_bytes(answer[:4], "big")])
        code = getattr(getattr(command, "error", None), "error", 0)
        return commands.command_name(command.type) + (f" {code}" if code else "")
    return answer[:3].decode() if answer[:3].isdigit() else "an answer" if answer else "nothing"


def _for(at: int, data: bytes, holes: list[Hole]) -> bytes:
    """The request of one of the servers."""
    for first, second in holes if at else ():
        data = data.replace(first, second)
    return data


def _in_words_of_first(said: bytes, holes: list[Hole]) -> bytes:
    """An answer of the second server with what it says back of a request."""
    for mine, other in holes:
        said = said.replace(other, mine)
    return said


def _last_part(line: bytes) -> bytes:
    """An audit line from its id."""
    return line[line.find(b'"topic_id"') :]


def _by_id(lines: list[bytes]) -> list[bytes]:
    """Audit lines, those of deletions by id in the order of the first server's ids."""
    runs = groupby(lines, lambda line: b'"delete_topic"' in line)
    return [line for deletes, run in runs for line in (sorted(run, key=_last_part) if deletes else run)]


def _request_for(at: int, request: HttpRequest, holes: list[Hole]) -> HttpRequest:
    def text(value: str) -> str:
        return _for(at, value.encode(), holes).decode()

    if not at or not holes:
        return request
    body = None if request.body is None else _for(at, request.body, holes)
    headers = {name: text(value) for name, value in request.headers.items()}
    return HttpRequest(request.method, text(request.target), headers, body)


def _ids(api: Api, version: int, *answers: bytes) -> Any:
    """The ids in the same places of two answers of Kafka's protocol."""
    try:
        values = [read_response(api, version, answer)[1] for answer in answers]
    except MalformedMessage:
        return iter(())
    return ids_in(*values)


def _command(answer: bytes) -> str:
    """An answer of Pulsar's protocol in words; one that is no command as it is."""
    try:
        return str(BaseCommand.FromString(answer[4 : 4 + int.from_bytes(answer[:4], "big")]))
    except DecodeError:
        return _text(answer)


def _fields(api: Api, version: int, answer: bytes) -> str:
    """An answer of Kafka's protocol in words, with topics to delete in the order of their names and causes."""
    try:
        number, value = read_response(api, version, answer)
    except MalformedMessage:
        return _text(answer)
    if api.name == "DeleteTopics":
        value["responses"].sort(key=str)
    return f"{number} {value}"


def _framed(words: Callable[[bytes], str], answer: bytes) -> str:
    """Messages behind their lengths, each in words."""
    found = []
    while answer:
        end = 4 + int.from_bytes(answer[:4], "big")
        found.append(words(answer[4:end]))
        answer = answer[end:]
    return "\n".join(found)


def _text(answer: bytes) -> str:
    return re.sub(r"Content-Length: \d+", "", answer.decode("utf-8", "backslashreplace"))


def _audit_lines(log: Path) -> dict[str, list[bytes]]:
    """The lines of each client in their order, without what the line itself has of the time."""
    found: defaultdict[str, list[bytes]] = defaultdict(list)
    for line in log.read_bytes().splitlines():
        event = _json(line)
        if isinstance(event, dict) and event.get("logger") == _AUDIT:
            event.pop("timestamp", None)
            found[str(event.get("client_version"))].append(json.dumps(event, ensure_ascii=False).encode())
    return found

"""What a real broker answered (`tests/vectors/pulsar-4.2.4-admin.json`), against what this server does.

If they differ, ``DIFFERENT`` says how, and why.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from pathlib import Path
from typing import Any, Final

from broker_core.catalog import SqliteCatalog
from broker_core.errors import Cause
from broker_core.names import TopicName
from broker_core.servers.http.admin import _reason_response
from broker_core.servers.http.api.problem_details import Problem
from tests.interop.record_admin import Exchange, ask
from tests.support.api_serving import api_served
from tests.support.vectors import VECTORS

_HERE: Final = "/admin/v2/persistent/public/recorded"
_RECORDED: Final = json.loads((VECTORS / "pulsar-4.2.4-admin.json").read_text(encoding="utf-8"))["exchanges"]

_NO_BROKERS: Final = 501, "This server lists topics and serves none: it has no brokers behind it"
_BY_TOPICS: Final = 501, "A namespace is there with its first topic: create a topic, or delete its topics"
_OF_TOPIC: Final = (
    412,
    (
        "persistent://public/recorded/told-partition-0 is a partition: it has the properties of its topic, "
        "persistent://public/recorded/told"
    ),
)
#: Status and answer of this server by the request (`#2` where it is asked again); of an error, its reason.
DIFFERENT: Final[dict[str, tuple[int, Any]]] = {
    # A namespace has no life of its own in a catalogue: it is told of while it has topics, and is made by one.
    "GET /admin/v2/tenants": (200, []),
    "GET /admin/v2/namespaces/public": (404, "Tenant not found"),
    "PUT /admin/v2/persistent/public/unmade/plain": (204, None),
    "PUT /admin/v2/persistent/public/unmade-too/parted/partitions 2": (204, None),
    "PUT /admin/v2/persistent/nobody/at-all/plain": (204, None),
    "PUT /admin/v2/namespaces/public/made": _BY_TOPICS,
    "PUT /admin/v2/namespaces/public/made #2": _BY_TOPICS,
    "DELETE /admin/v2/namespaces/public/made": _BY_TOPICS,
    "DELETE /admin/v2/namespaces/public/nowhere": _BY_TOPICS,
    # There is no broker to look up, and no schema.
    **{
        f"GET /lookup/v2/topic/persistent/{rest}": _NO_BROKERS
        for rest in (
            "public/recorded/plain",
            "public/recorded/plain?authoritative=true",
            "public/recorded/plain?listenerName=unknown",
            "public/recorded/parted-partition-0",
            "public/recorded/parted",
            "public/recorded/unknown",
            "public/nowhere/unknown",
        )
    },
    "GET /lookup/v2/topic/persistent/public/recorded/plain/bundle": (404, None),
    "GET /lookup/v2/topic/neither/public/recorded/plain": (404, None),
    "GET /admin/v2/schemas/public/recorded/plain/schema": _NO_BROKERS,
    "GET /admin/v2/schemas/public/recorded/plain/schema/0": _NO_BROKERS,
    "GET /admin/v2/schemas/public/recorded/unknown/schema": _NO_BROKERS,
    # Mistakes of the broker.
    f"PUT {_HERE}/parted-5/partitions": (400, "The request entity cannot be empty."),
    f'PUT {_HERE}/plain/properties {{"n": null}}': (400, "The value of the property 'n' is no text"),
    f"GET {_HERE}/parted/properties": (
        200,
        {},
    ),  # its empty body ends pulsar-admin with a NullPointerException
    # Partitions have the properties of their topic, which selects them; the topic ends with its last partition.
    f'PUT {_HERE}/told-partition-0/properties {{"m": "x"}}': _OF_TOPIC,
    f"GET {_HERE}/told-partition-0/properties #2": (200, {}),
    f"GET {_HERE}/split/partitions #2": (200, {"partitions": 2, "deleted": False}),
    # Topics that are not stored have properties all the same, and are listed whether a broker has loaded them or not.
    "GET /admin/v2/non-persistent/public/recorded/fleeting/properties": (200, {}),
    "GET /admin/v2/non-persistent/public/recorded #2": (
        200,
        [
            "non-persistent://public/recorded/fleeting",
            "non-persistent://public/recorded/flock-partition-0",
            "non-persistent://public/recorded/flock-partition-1",
        ],
    ),
    # A web page of anybody can send text, without being asked for leave.
    f"PUT {_HERE}/by-plain-text/partitions 3": (
        415,
        "the body must have the Content-Type application/json or application/vnd.partitioned-topic-metadata+json",
    ),
}
#: No listing has system topics, and the recorded one has this.
_SYSTEM: Final = "persistent://public/recorded/__change_events"


async def test_it_answers_as_a_broker_of_4_2_4(tmp_path: Path) -> None:
    async with api_served(tmp_path, topics={}) as served:
        # As the recorded one, the namespace is there and has no topics.
        with SqliteCatalog(tmp_path / "topics.sqlite") as catalog:
            first = TopicName.parse("persistent://public/recorded/first")
            catalog.create(first)
            catalog.delete(first)
        assert served.broker.http_address is not None
        host, port = served.broker.http_address
        differences, met = [], set()
        asked: Counter[str] = Counter()
        for recorded in _RECORDED:
            exchange = Exchange(
                recorded["method"], recorded["path"], recorded.get("body"), recorded.get("content")
            )
            said = await asyncio.to_thread(ask, host, port, exchange)
            key = " ".join(filter(None, (exchange.method, exchange.path, exchange.body)))
            asked[key] += 1
            key += f" #{asked[key]}" if asked[key] > 1 else ""
            if key in DIFFERENT:
                met.add(key)
            status, answer = DIFFERENT.get(key, (recorded["status"], _answer(recorded)))
            if said["status"] != status or (answer is not None and _answer(said) != answer):
                differences.append((key, (status, answer), (said["status"], _answer(said))))
            assert said["status"] < 400 or isinstance(
                said["answer"].get("reason", said["answer"].get("error")), str
            )
        assert differences == []
        assert met == DIFFERENT.keys()


def _answer(said: dict[str, Any]) -> Any:
    """What is compared: of an error its reason, of a list its items without order, nothing of texts and of HTML."""
    answer = said.get("answer")
    if isinstance(answer, dict) and said["status"] >= 400:
        return answer.get("reason")
    if isinstance(answer, list):
        return sorted(name for name in answer if name != _SYSTEM)
    return answer if isinstance(answer, dict) else None


def test_the_detail_of_an_error_is_its_reason() -> None:
    response = _reason_response(Problem(503, "later", Cause.QUEUE, {"Retry-After": "1"}))
    assert response.status == 503
    assert response.headers["Retry-After"] == "1"
    assert response.text is not None
    assert json.loads(response.text) == {"reason": "later"}


def test_an_error_keeps_several_challenges() -> None:
    challenges = (("WWW-Authenticate", "Bearer"), ("WWW-Authenticate", "Basic"))
    response = _reason_response(Problem(401, "who?", Cause.UNAUTHENTICATED, challenges))
    assert response.headers.getall("WWW-Authenticate") == ["Bearer", "Basic"]

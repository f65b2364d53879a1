"""The steps of a listing about one topic, by what the parts of a broker decide. The rest is tested over HTTP."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from broker_core import Asker, ListingRequest, Mode, NamespaceName, TopicName
from broker_core.broker import Broker
from broker_core.service import why_listed
from broker_core.service.find_topics import Find
from tests.support.api_serving import api_served

NAMESPACE = NamespaceName("public", "default")


async def blocked(
    broker: Broker, asker: Asker, local: str, **question: Any
) -> tuple[str | None, bool | None]:
    pipeline, topic = broker.pipeline, TopicName("persistent", NAMESPACE, local)
    catalog = broker._http_servers._services.catalog  # type: ignore[union-attr]
    request = ListingRequest(NAMESPACE, question.pop("mode", Mode.PERSISTENT), asker=asker, **question)
    why = await why_listed(pipeline, Find(pipeline, catalog), request, topic)
    return why.blocked_by, why.listed


async def test_each_principal_needs_its_right(tmp_path: Path) -> None:
    rules = [
        {"roles": ["team", "proxy"], "namespaces": ["public/*"], "actions": ["list"]},
        {"roles": ["team"], "namespaces": ["*"], "actions": ["list"], "effect": "deny", "topics": ["bills"]},
    ]
    async with api_served(tmp_path, authorization={"mode": "rules", "rules": rules}) as served:
        broker = served.broker
        for role, original, local, expected in (
            ("team", None, "orders", (None, True)),
            ("team", None, "bills", ("rules", False)),
            ("proxy", None, "bills", (None, True)),
            ("proxy", "team", "bills", ("rules", False)),
            ("proxy", "other", "bills", ("rules", None)),
            (None, None, "bills", ("rules", None)),
        ):
            assert await blocked(broker, Asker(role, original), local) == expected, (role, original, local)


async def test_a_system_topic_is_in_no_listing(tmp_path: Path) -> None:
    async with api_served(
        tmp_path, topics={"persistent://public/default/__change_events": (0, {})}
    ) as served:
        assert await blocked(served.broker, Asker(), "__change_events") == ("mode", False)

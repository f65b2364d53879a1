from __future__ import annotations

import pytest

from tests.support.api_serving import NAMESPACE, ApiServed

LISTING = f"{NAMESPACE}/topics"
ORDERS = [f"persistent://public/default/orders-partition-{number}" for number in range(2)]
BILLS = "persistent://public/default/bills"
TICKS = "non-persistent://public/default/ticks"


@pytest.mark.parametrize(
    ("query", "names", "filtered"),
    [
        ({}, [BILLS, *ORDERS], False),
        ({"mode": "all"}, [TICKS, BILLS, *ORDERS], False),
        ({"mode": "non_persistent"}, [TICKS], False),
        ({"pattern": "public/default/o.*"}, ORDERS, True),
        ({"property": "region=us"}, [BILLS], False),
        ({"property": "unknown=us"}, [BILLS, *ORDERS], False),
    ],
)
async def test_the_question_is_that_of_the_binary_protocol(
    served: ApiServed, query: dict[str, str], names: list[str], filtered: bool
) -> None:
    said = await served.ask(LISTING, params=query)
    assert said.status == 200
    assert sorted(said.json["items"]) == sorted(names)
    assert (said.json["filtered"], said.json["next"]) == (filtered, None)


async def test_an_unknown_namespace_has_no_topics(served: ApiServed) -> None:
    said = await served.ask("/v1/namespaces/no/where/topics")
    assert (said.status, said.json["items"]) == (200, [])

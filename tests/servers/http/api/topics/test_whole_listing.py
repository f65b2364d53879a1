from __future__ import annotations

from tests.support.api_serving import NAMESPACE, ApiServed


async def test_it_is_one_json_object(served: ApiServed) -> None:
    said = await served.ask(f"{NAMESPACE}/topics", params={"pattern": "public/default/bills"})
    assert said.headers["Content-Type"].split(";")[0] == "application/json"
    assert said.json == {"items": ["persistent://public/default/bills"], "filtered": True, "next": None}

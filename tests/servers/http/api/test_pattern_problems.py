from __future__ import annotations

import pytest

from tests.support.api_serving import NAMESPACE, ApiServed

LISTING = f"{NAMESPACE}/topics"


@pytest.mark.parametrize(
    ("pattern", "part"),
    [("public/default/(?!b).*", "(?!"), ("persistent://public/default/(b", "("), ("http://b", "http://")],
)
async def test_a_refused_pattern_is_told_with_its_part(served: ApiServed, pattern: str, part: str) -> None:
    for query in ({}, {"limit": "1"}):
        said = await served.ask(LISTING, params={"pattern": pattern} | query)
        assert (said.status, said.json["cause"]) == (400, "PATTERN")
        error = said.json["error"]
        assert pattern[error["offset"] : error["offset"] + error["length"]] == part


async def test_other_errors_have_no_part(served: ApiServed) -> None:
    said = await served.ask(LISTING, params={"pattern": "x" * 20_000})
    assert (said.status, "error" in said.json) == (400, False)
    assert "error" not in (await served.ask(f"{LISTING}?limit=0")).json

"""The properties of a listing, as a broker of 4.2 reads them."""

from __future__ import annotations

import pytest

from broker_core.servers.http.admin.property_parameter import read_properties


@pytest.mark.parametrize(
    ("text", "pairs"),
    [
        ("", []),
        ("region=eu", [("region", "eu")]),
        ("region=eu,tier=gold", [("region", "eu"), ("tier", "gold")]),
        (" region = eu ", [("region", "eu")]),
        ("region=eu+west", [("region", "eu west")]),
        ("region=caf%C3%A9", [("region", "café")]),
        ("a=b=c", [("a", "b=c")]),
        ("a%2Cb=1", [("a,b", "1")]),
        ("a=", [("a", "")]),
        # What is no pair is passed over.
        ("region", []),
        ("=eu", []),
        (",,", []),
        ("a=%zz,b=1", [("b", "1")]),
        # The library 4.2.4 sends {"x,y": "1"} in this form: the comma cannot be told from one between pairs.
        ("x,y=1", [("y", "1")]),
    ],
)
def test_pairs(text: str, pairs: list[tuple[str, str]]) -> None:
    assert read_properties(text) == pairs

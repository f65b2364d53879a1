"""Plugins that hide topics, as clients of the protocol see it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow.compute as pc
import pytest

from broker_core import ListingRequest, TopicListingResult
from broker_core.listing.listing_hash import topics_hash
from tests.support.plugin_answers import (
    STORED,
    A,
    B,
    answering,
    asked,
    masking,
    success,
    topics,
)
from tests.support.raw_client import Refused


def containing(text: str) -> Callable[[Any], Any]:
    return lambda topics: pc.match_substring(topics, text)


async def test_masks_are_anded_before_the_hash() -> None:
    names = [f"persistent://t/n/{text}" for text in ("x", "xy", "xyz", "yz", "z")]
    plugins = {
        "lists": answering(success(names, topics_hash=topics_hash(names))),
        "all": masking(lambda _: None),
        "x": masking(containing("x")),
        "numpy": masking(lambda topics: np.array(["y" in name for name in topics.to_pylist()])),
    }
    answer = await asked(plugins)
    assert (topics(answer), answer.topics_hash) == (names[1:3], topics_hash(names[1:3]))
    answer = await asked(plugins, pattern="t/n/.*z")
    assert (topics(answer), answer.topics_hash, answer.filtered) == (
        names[2:3],
        topics_hash(names[2:3]),
        True,
    )


async def test_a_mask_sees_what_the_default_lister_listed_and_what_the_pattern_left() -> None:
    seen: list[list[str]] = []

    def mask(topics: Any) -> Any:
        seen.append(topics.to_pylist())
        return pc.ends_with(topics, "2")

    answer = await asked({"m": masking(mask)}, pattern="t/n/stored-[123]")
    assert (topics(answer), answer.topics_hash) == (STORED[2:3], topics_hash(STORED[2:3]))
    assert seen == [STORED[1:]]


async def test_the_clients_hash_is_of_what_is_visible() -> None:
    """A lister must not compare the client's hash with the whole, of which the client knows nothing."""
    hashes: list[Any] = []

    def note(request: ListingRequest) -> Any:
        hashes.append(request.topics_hash)
        return success([A, B])

    plugins = {"l": answering(note), "m": masking(containing("/b"))}
    answer = await asked(plugins, topics_hash=topics_hash([B]))
    assert (answer.changed, topics(answer)) == (False, [])
    answer = await asked(plugins, topics_hash=topics_hash([A, B]))
    assert (answer.changed, topics(answer)) == (True, [B])
    assert hashes == [None, None]


async def test_unchanged_is_illegal_under_a_mask() -> None:
    plugins = {"l": answering(TopicListingResult.unchanged("0123abcd")), "m": masking(lambda _: None)}
    with pytest.raises(Refused, match=r"plugin 'l' gave a wrong answer: it returned unchanged\(\), but"):
        await asked(plugins, topics_hash="0123abcd")

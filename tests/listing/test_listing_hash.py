"""The topics hash against constants of an independent CRC32C and the answers of a real broker.

docs/reference/pulsar-behaviour.md#the-topics-hash
"""

from __future__ import annotations

import random

import google_crc32c
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker_core.listing.listing_hash import (
    EMPTY_HASH,
    crc_text,
    crcs_of_parts,
    extend_crc,
    topics_hash,
    utf16_key,
)
from tests.support.vectors import pattern_vectors

T = "persistent://tenant/ns/topic"
P = "persistent://my-property/my-ns/pattern-topic-"
D = "persistent://public/default/"


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ([], "00000000"),
        ([f"{T}1"], "fd59a01d"),
        ([f"{T}1", f"{T}2"], "21ed405c"),
        ([f"{T}2"], "09aaf00e"),
        ([f"{T}2", f"{T}4", f"{T}5"], "6558fa1a"),
        ([f"{T}7", f"{T}8", f"{T}9"], "64844d9e"),
        ([f"{P}1", f"{P}2", f"{P}3"], "90d4a04a"),
        ([f"{P}1", f"{P}2"], "a70f7073"),
        (
            [f"{D}test-topic{n}-partition-{i}" for n in ("", "2") for i in range(3)]
            + [f"{D}test-topic3-non-partitioned"],
            "e32457da",
        ),
        ([f"{D}a", f"{D}a-partition-0", f"{D}a-partition-10", f"{D}a-partition-2"], "89ebd6c9"),
        ([f"{D}a"], "e4a876e3"),
        ([f"{D}a", f"{D}a"], "33a6ce8b"),
        (["persistent://t/n/\uffee", "persistent://t/n/\U0001f600"], "3fa30cdb"),
        ([f"{D}a,b"], "1d65cec0"),
        ([f"{D}a", "b"], "222c8d66"),
    ],
)
def test_the_constants_of_an_independent_crc(names: list[str], expected: str) -> None:
    assert topics_hash(names) == expected
    shuffled = random.Random(1).sample(names, len(names))
    assert topics_hash(shuffled) == expected
    assert topics_hash(iter(names)) == expected


def test_the_crc_is_shown_in_little_endian_hex() -> None:
    assert crc_text(google_crc32c.value(b"123456789")) == "839206e3"
    assert crc_text(0) == EMPTY_HASH
    assert crc_text(0x0000_00FF) == "ff000000"


def test_a_real_broker_says_the_same_of_all_of_its_answers() -> None:
    vectors = pattern_vectors()
    for case in vectors["cases"]:
        if case["outcome"] == "listing":
            names = [f"persistent://{vectors['namespace']}/{local}" for local in case["topics"]]
            assert topics_hash(names) == case["topics_hash"], case["topics_pattern"]


def test_the_order_is_that_of_java_strings() -> None:
    names = ["\ue000", "\uffee", "\U0001f600", "\ud7ff", "a", "", "\U00010000", "aa"]
    assert sorted(names, key=utf16_key) == [
        "",
        "a",
        "aa",
        "\ud7ff",
        "\U00010000",
        "\U0001f600",
        "\ue000",
        "\uffee",
    ]


@given(st.binary(max_size=600_000), st.binary(max_size=10))
def test_extending_goes_in_steps_to_the_same_end(data: bytes, head: bytes) -> None:
    assert extend_crc(google_crc32c.value(head), memoryview(data)) == google_crc32c.value(head + data)


def test_extending_over_several_steps() -> None:
    data = random.Random(2).randbytes(1_000_001)
    assert extend_crc(0, memoryview(data)) == google_crc32c.value(data)


def test_parts_have_the_crcs_that_each_has_alone() -> None:
    data = random.Random(3).randbytes(700_000)
    starts, stops = np.array([0, 0, 5, 9, 100_000, 1]), np.array([3, 0, 9, 300_000, 700_000, 700_000])
    found = crcs_of_parts(memoryview(data), starts, stops)
    assert found.dtype == np.uint32
    expected = [google_crc32c.value(data[start:stop]) for start, stop in zip(starts, stops, strict=True)]
    assert found.tolist() == expected

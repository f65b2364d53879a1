from __future__ import annotations

import pytest

from broker_core.cli.question import UnusableQuestion, parse_mode, parse_namespace, parse_properties
from broker_core.errors import InvalidName
from broker_core.names import Mode


def test_properties_are_pairs_and_the_last_of_a_key_counts() -> None:
    assert parse_properties(["a=1", "b=x=y", "a=2", "c="]) == {"a": "2", "b": "x=y", "c": ""}
    assert parse_properties(None) == {}


@pytest.mark.parametrize("pair", ["a", "=b", ""])
def test_what_is_no_pair_is_named(pair: str) -> None:
    with pytest.raises(UnusableQuestion) as caught:
        parse_properties([pair])
    assert str(caught.value) == f"--property {pair!r}: expected KEY=VALUE"


def test_modes_as_pulsar_writes_them_and_as_people_do() -> None:
    assert parse_mode("NON_PERSISTENT") is parse_mode("non-persistent") is Mode.NON_PERSISTENT
    with pytest.raises(InvalidName, match="'most'"):
        parse_mode("most")


def test_a_namespace_has_two_parts() -> None:
    assert str(parse_namespace("public/default")) == "public/default"
    with pytest.raises(InvalidName, match="expected tenant/namespace"):
        parse_namespace("public")

from __future__ import annotations

import pytest

from broker_core.kafka.configs.config_types import InvalidConfig
from broker_core.kafka.configs.value_rules import between, gzip_level, some_of, throttled_replicas


def test_both_ends_of_a_range_are_in_it() -> None:
    check = between(1, 3)
    check("a", 1)
    check("a", 3)
    with pytest.raises(InvalidConfig, match="Invalid value 0 for configuration a: Value must be at least 1"):
        check("a", 0)
    with pytest.raises(
        InvalidConfig, match="Invalid value 4 for configuration a: Value must be no more than 3"
    ):
        check("a", 4)


def test_a_level_of_gzip_is_one_to_nine_or_the_default() -> None:
    for level in (-1, 1, 9):
        gzip_level("a", level)
    with pytest.raises(InvalidConfig, match="Value must be between 1 and 9 or equal to -1"):
        gzip_level("a", 0)


def test_a_list_names_the_first_word_that_it_cannot_have() -> None:
    with pytest.raises(InvalidConfig, match="Invalid value x for configuration a"):
        some_of("b", "c")("a", ("b", "x", "y"))


def test_throttled_replicas_are_all_or_pairs_of_numbers() -> None:
    throttled_replicas("a", ("*",))
    throttled_replicas("a", ("0:1", ""))
    with pytest.raises(InvalidConfig, match="must be the literal"):
        throttled_replicas("a", ("*", "0:1"))

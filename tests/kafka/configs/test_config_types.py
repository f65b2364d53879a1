from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker_core.kafka.configs.config_types import ConfigType, InvalidConfig, parse_value, value_text


@pytest.mark.parametrize("text", ["1" * 5000, "𝟝", "+", "", "1__0", "9" * 20])
def test_what_java_reads_no_number_from_is_refused(text: str) -> None:
    with pytest.raises(InvalidConfig, match="Not a number of type LONG"):
        parse_value(ConfigType.LONG, "a", text)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("1e7", "1.0E7"),
        ("12345678", "1.2345678E7"),
        ("1e16", "1.0E16"),
        ("-1.5e-7", "-1.5E-7"),
        ("0x1p2000", "Infinity"),
        ("-0x1p2000", "-Infinity"),
        ("Infinity", "Infinity"),
        ("100", "100.0"),
        ("9999999", "9999999.0"),
    ],
)
def test_a_double_has_the_text_that_java_gives_it(text: str, shown: str) -> None:
    assert value_text(parse_value(ConfigType.DOUBLE, "a", text)) == shown


@given(st.floats())
def test_the_text_of_a_double_is_read_as_the_same(value: float) -> None:
    assert str(parse_value(ConfigType.DOUBLE, "a", value_text(value))) == str(value)


@given(st.integers(-(2**63), 2**63 - 1))
def test_the_text_of_a_long_is_read_as_the_same(value: int) -> None:
    assert parse_value(ConfigType.LONG, "a", value_text(value)) == value

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ValidationError

from broker_core.quantities import (
    Count,
    Duration,
    ListenAddress,
    PositiveDuration,
    Size,
    format_duration,
    format_size,
    parse_duration,
    parse_size,
)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("30s", 30.0),
        ("250ms", 0.25),
        ("2m", 120.0),
        ("1h", 3600.0),
        ("1d", 86400.0),
        ("1m30s", 90.0),
        (" 1m 30s ", 90.0),
        ("1.5s", 1.5),
        ("100us", 1e-4),
        ("7", 7.0),
        ("0", 0.0),
        (3, 3.0),
        (0.5, 0.5),
    ],
)
def test_durations_are_seconds(text: object, seconds: float) -> None:
    assert parse_duration(text) == pytest.approx(seconds)


@pytest.mark.parametrize(
    "wrong",
    [
        "",
        "s",
        "30 parsecs",
        "30sec",
        "s30",
        "30s later",
        "-1s",
        -1,
        True,
        None,
        float("inf"),
        float("nan"),
        [],
        "1s x2s",
    ],
)
def test_what_is_no_duration_says_so(wrong: object) -> None:
    with pytest.raises(ValueError, match="duration") as caught:
        parse_duration(wrong)
    assert repr(wrong) in str(caught.value)


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("100MB", 100 * 1024 * 1024),
        ("100MiB", 100 * 1024 * 1024),
        ("64KiB", 65536),
        ("64 kb", 65536),
        ("1.5g", 3 * 512 * 1024**2),
        ("2TB", 2 * 1024**4),
        ("17", 17),
        ("17B", 17),
        (0, 0),
        (5242880, 5242880),
        (16.0, 16),
    ],
)
def test_sizes_are_bytes_in_powers_of_1024(text: object, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize(
    "wrong", ["", "MB", "10 miles", "-1MB", -1, 1.5, "0.3B", True, None, float("inf"), float("nan")]
)
def test_what_is_no_size_says_so(wrong: object) -> None:
    with pytest.raises(ValueError, match="size"):
        parse_size(wrong)


@given(st.integers(min_value=0, max_value=2**60))
def test_a_size_prints_as_it_is_read(size: int) -> None:
    assert parse_size(format_size(size)) == size


@given(st.floats(min_value=0.001, max_value=1e7).map(lambda seconds: round(seconds, 3)))
def test_a_duration_prints_as_it_is_read(seconds: float) -> None:
    assert parse_duration(format_duration(seconds)) == pytest.approx(seconds)


def test_they_print_in_the_largest_unit_that_is_exact() -> None:
    assert [format_duration(s) for s in (0, 0.25, 30, 90, 120, 7200, 172800, 1.5)] == [
        "0s",
        "250ms",
        "30s",
        "90s",
        "2m",
        "2h",
        "2d",
        "1500ms",
    ]
    assert [format_size(s) for s in (0, 5, 1024, 5242880, 5242881, 3 * 1024**3)] == [
        "0B",
        "5B",
        "1KB",
        "5MB",
        "5242881B",
        "3GB",
    ]


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        ("127.0.0.1:6650", "127.0.0.1", 6650),
        ("localhost:0", "localhost", 0),
        ("[::1]:0", "::1", 0),
        ("[fe80::1%eth0]:65535", "fe80::1%eth0", 65535),
    ],
)
def test_an_address_is_read_and_printed(text: str, host: str, port: int) -> None:
    address = ListenAddress.parse(text)
    assert (address.host, address.port) == (host, port)
    assert str(address) == text


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ("127.0.0.1", "not HOST:PORT"),
        ("6650", "not HOST:PORT"),
        ("localhost:", "not HOST:PORT"),
        ("localhost:http", "'http' is no port"),
        ("localhost:65536", "no port from 0 to 65535"),
        ("localhost:-1", "no port"),
        (":6650", "0.0.0.0:6650"),
        ("[]:6650", "names no host"),
        ("::1:6650", "brackets"),
        ("pulsar://h:6650", "not HOST:PORT"),
        ("a b:1", "not HOST:PORT"),
    ],
)
def test_what_is_no_address_says_how_to_write_it(wrong: str, said: str) -> None:
    with pytest.raises(ValueError) as caught:
        ListenAddress.parse(wrong)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("listen", "reached"),
    [
        ("0.0.0.0:1", "127.0.0.1:1"),
        ("[::]:1", "[::1]:1"),
        ("192.0.2.1:1", "192.0.2.1:1"),
        ("host:1", "host:1"),
    ],
)
def test_who_listens_everywhere_is_reached_here(listen: str, reached: str) -> None:
    assert str(ListenAddress.parse(listen).from_here) == reached


class _Model(BaseModel):
    wait: Duration = 30.0
    most: PositiveDuration = 1.0
    memory: Size = 1024
    places: Count = 3
    listen: ListenAddress = ListenAddress("::1", 1)


def test_a_model_holds_plain_values_and_prints_readable_ones() -> None:
    model = _Model.model_validate(
        {"wait": "250ms", "most": 2, "memory": "64KiB", "places": "7", "listen": "127.0.0.1:0"}
    )
    assert (model.wait, model.most, model.memory, model.places) == (0.25, 2.0, 65536, 7)
    assert model.model_dump(mode="json") == {
        "wait": "250ms",
        "most": "2s",
        "memory": "64KB",
        "places": 7,
        "listen": "127.0.0.1:0",
    }
    assert model.model_dump()["wait"] == 0.25
    assert _Model.model_validate(model.model_dump(mode="json")) == model


@pytest.mark.parametrize(
    "wrong", [{"wait": True}, {"most": 0}, {"memory": "x"}, {"places": 0}, {"places": True}, {"listen": 3}]
)
def test_a_model_refuses_the_rest(wrong: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        _Model.model_validate(wrong)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1.2.3", "::1", "localhost"])
def test_an_address_that_only_this_machine_reaches(host: str) -> None:
    assert ListenAddress(host, 1).is_loopback
    assert not ListenAddress("0.0.0.0", 1).is_loopback
    assert not ListenAddress("example.com", 1).is_loopback

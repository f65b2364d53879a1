from __future__ import annotations

import pytest

from broker_core.service.failure_pace import _ADDRESSES, _LONGEST, FailurePace
from tests.support.clock import SetClock

HOST = "192.0.2.1"


@pytest.fixture
def clock() -> SetClock:
    return SetClock()


@pytest.fixture
def pace(clock: SetClock) -> FailurePace:
    return FailurePace(clock)


def fail(pace: FailurePace, host: str, times: int) -> None:
    for _ in range(times):
        pace.failed(host)


def test_the_first_failures_cost_nothing(pace: FailurePace) -> None:
    assert pace.delay(HOST) == 0.0
    fail(pace, HOST, 8)
    assert pace.delay(HOST) == 0.0
    fail(pace, HOST, 1)
    assert pace.delay(HOST) == pytest.approx(0.1)


def test_each_failure_more_delays_longer_up_to_the_longest(pace: FailurePace) -> None:
    delays = []
    for _ in range(100):
        pace.failed(HOST)
        delays.append(pace.delay(HOST))
    assert delays == sorted(delays)
    assert delays[-1] == _LONGEST
    fail(pace, HOST, 10_000)
    assert pace.delay(HOST) == _LONGEST


def test_an_address_is_forgiven_by_and_by(pace: FailurePace, clock: SetClock) -> None:
    fail(pace, HOST, 40)
    assert pace.delay(HOST) == pytest.approx(3.2)
    clock.now += 10
    assert pace.delay(HOST) == pytest.approx(1.2)
    clock.now += 30
    assert pace.delay(HOST) == 0.0
    assert len(pace._failures) == 1
    clock.now += 60
    assert pace.delay(HOST) == 0.0
    assert not pace._failures


def test_other_addresses_are_not_slowed(pace: FailurePace) -> None:
    fail(pace, HOST, 100)
    assert pace.delay("192.0.2.2") == 0.0
    assert pace.delay("2001:db8::1") == 0.0
    assert pace.delay("/run/socket") == 0.0


@pytest.mark.parametrize(
    ("failing", "asking"),
    [
        ("192.0.2.1", "::ffff:192.0.2.1"),
        ("2001:db8::1", "2001:db8::ffff:0:0:9"),
        ("fe80::1%eth0", "fe80::1"),
        ("/run/socket", "/run/socket"),
    ],
)
def test_texts_of_one_client_count_together(pace: FailurePace, failing: str, asking: str) -> None:
    fail(pace, failing, 100)
    assert pace.delay(asking) == _LONGEST


def test_networks_of_ipv6_count_each_on_its_own(pace: FailurePace) -> None:
    fail(pace, "2001:db8:0:1::1", 100)
    assert pace.delay("2001:db8:0:2::1") == 0.0


def test_a_bounded_number_of_addresses_is_remembered(pace: FailurePace) -> None:
    fail(pace, HOST, 100)
    for number in range(_ADDRESSES - 1):
        pace.failed(f"10.0.{number // 256}.{number % 256}")
    assert pace.delay(HOST) == _LONGEST
    fail(pace, "10.0.0.0", 10)  # it was the second one to fail, and is the last one now
    for number in range(2):
        pace.failed(f"10.1.0.{number}")
    assert pace.delay(HOST) == 0.0
    assert pace.delay("10.0.0.0") > 0.0
    assert len(pace._failures) == _ADDRESSES

"""The circuit breaker: 5 failures in a row, 5 seconds, one trial."""

from __future__ import annotations

from broker_core.plugins.call.circuit_breaker import BreakerState, CallPermission, CircuitBreaker


def fail(breaker: CircuitBreaker, times: int, now: float = 0.0) -> None:
    for _ in range(times):
        breaker.failed(breaker.admit(now), now)


def test_it_opens_after_five_failures_in_a_row() -> None:
    breaker = CircuitBreaker()
    fail(breaker, 4)
    breaker.succeeded(breaker.admit(0))
    fail(breaker, 4)
    assert breaker.state is BreakerState.CLOSED
    fail(breaker, 1)
    assert (breaker.state, breaker.opened) == (BreakerState.OPEN, 1)
    assert breaker.admit(4.99) is CallPermission.REFUSED


def test_after_five_seconds_one_call_tries() -> None:
    breaker = CircuitBreaker()
    fail(breaker, 5)
    assert breaker.admit(5.0) is CallPermission.TRIAL
    assert breaker.state is BreakerState.HALF_OPEN
    assert breaker.admit(5.0) is CallPermission.REFUSED
    breaker.succeeded(CallPermission.TRIAL)
    assert (breaker.state, breaker.failures) == (BreakerState.CLOSED, 0)
    assert breaker.admit(5.0) is CallPermission.NORMAL


def test_a_failed_trial_opens_it_again() -> None:
    breaker = CircuitBreaker()
    fail(breaker, 5)
    breaker.failed(breaker.admit(6.0), 7.0)
    assert (breaker.state, breaker.opened) == (BreakerState.OPEN, 2)
    assert breaker.admit(11.9) is CallPermission.REFUSED
    assert breaker.admit(12.0) is CallPermission.TRIAL


def test_a_trial_without_a_verdict_leaves_the_next_call_to_try() -> None:
    breaker = CircuitBreaker()
    fail(breaker, 5)
    breaker.undecided(breaker.admit(5.0))
    assert breaker.admit(5.0) is CallPermission.TRIAL


def test_whoever_recovered_is_called_at_once() -> None:
    breaker = CircuitBreaker()
    fail(breaker, 5)
    breaker.recovered()
    assert (breaker.state, breaker.failures) == (BreakerState.CLOSED, 0)
    assert breaker.admit(0.1) is CallPermission.NORMAL
    fail(breaker, 4)
    assert breaker.state is BreakerState.CLOSED
    fail(breaker, 1)
    assert (breaker.state, breaker.opened) == (BreakerState.OPEN, 2)


def test_a_trial_from_before_a_recovery_decides_no_more_than_others() -> None:
    breaker = CircuitBreaker()
    fail(breaker, 5)
    trial = breaker.admit(5.0)
    breaker.recovered()
    breaker.undecided(trial)
    assert breaker.state is BreakerState.CLOSED
    breaker.failed(trial, 6.0)
    assert (breaker.state, breaker.failures) == (BreakerState.CLOSED, 1)
    fail(breaker, 4)
    breaker.succeeded(trial)
    assert breaker.admit(0.1) is CallPermission.REFUSED


def test_calls_from_before_it_opened_decide_nothing() -> None:
    breaker = CircuitBreaker()
    late = [breaker.admit(0) for _ in range(7)]
    for admission in late[:5]:
        breaker.failed(admission, 1.0)
    breaker.succeeded(late[5])
    assert breaker.state is BreakerState.OPEN
    breaker.failed(late[6], 4.0)
    assert (breaker.failures, breaker.opened) == (5, 1)
    breaker.undecided(late[6])
    assert (
        breaker.admit(6.0) is CallPermission.TRIAL
    )  # five seconds after it opened, not after the late failure

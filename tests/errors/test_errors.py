"""The hierarchy of exceptions, and the errors that clients get."""

from __future__ import annotations

from typing import Any

import pytest

from broker_core import errors
from broker_core.errors import (
    BrokerCoreError,
    Cause,
    InvalidListing,
    InvalidName,
    InvalidPattern,
    ListingFailed,
    ResponseTooLarge,
    ServerError,
    TooManyRequests,
)


@pytest.mark.parametrize(
    "name",
    [name for name in errors.__all__ if name not in {"Cause", "ServerError"}],
)
def test_all_are_errors_of_this_package(name: str) -> None:
    assert issubclass(getattr(errors, name), BrokerCoreError)


@pytest.mark.parametrize("kind", [InvalidName, InvalidListing, InvalidPattern])
def test_bad_input_is_a_value_error(kind: type[Exception]) -> None:
    assert issubclass(kind, ValueError)


def test_a_failed_listing_has_a_code_a_reason_and_perhaps_a_plugin() -> None:
    plain = ListingFailed("no catalogue")
    assert (str(plain), plain.code, plain.reason, plain.plugin) == (
        "no catalogue",
        ServerError.MetadataError,
        "failed",
        None,
    )
    told = ListingFailed("x", code=ServerError.NotAllowedError, reason="frame_limit", plugin="mine")
    assert (told.code, told.reason, told.plugin) == (ServerError.NotAllowedError, "frame_limit", "mine")


def test_the_cause_gives_the_code_and_a_given_code_its_cause() -> None:
    denied = ListingFailed("no", cause=Cause.DENIED)
    assert (denied.cause, denied.code) == (Cause.DENIED, ServerError.AuthorizationError)
    assert ListingFailed("no").cause is Cause.PLUGIN
    assert ListingFailed("no", code=ServerError.AuthorizationError).cause is Cause.DENIED
    assert ListingFailed("no", code=ServerError.ChecksumError).cause is Cause.PLUGIN
    passed_on = ListingFailed("no", cause=Cause.UPSTREAM, code=ServerError.ChecksumError)
    assert (passed_on.cause, passed_on.code) == (Cause.UPSTREAM, ServerError.ChecksumError)


@pytest.mark.parametrize("cause", [Cause.PERMITS, Cause.QUEUE, Cause.TIME])
def test_load_never_counts(cause: Cause) -> None:
    assert not ListingFailed("later", cause=cause).counts
    assert TooManyRequests("later", reason="x", cause=cause).cause is cause


def test_limits_ask_to_come_again() -> None:
    failed = TooManyRequests("no permits", reason="heap")
    assert isinstance(failed, ListingFailed)
    assert (failed.code, failed.reason) == (ServerError.TooManyRequests, "heap")


def test_an_answer_too_large_says_what_to_do() -> None:
    failed = ResponseTooLarge(6_000_000, 5_253_120, 90_000)
    assert failed.code is ServerError.NotAllowedError
    assert (failed.size, failed.limit) == (6_000_000, 5_253_120)
    for part in (
        "90000 topics",
        "6000000 bytes",
        "5253120 bytes",
        "narrower topics pattern",
        "max_message_size",
    ):
        assert part in failed.message


@pytest.mark.parametrize(
    ("arguments", "error", "says"),
    [
        ({"message": None}, TypeError, r"message must be a string \(str\(error\)\), not NoneType"),
        ({"message": b"x"}, TypeError, "message must be a string .*, not bytes"),
        ({"message": ValueError("x")}, TypeError, "not ValueError"),
        ({"code": "MetadataError"}, TypeError, "not str: write ServerError.MetadataError"),
        (
            {"code": "Later"},
            TypeError,
            "code must be a broker_core.errors.ServerError, not str: write one of it",
        ),
        ({"code": None}, TypeError, "not NoneType"),
        ({"code": True}, TypeError, "not bool"),
        ({"code": 1.0}, TypeError, "not float"),
        (
            {"code": 26},
            ValueError,
            "code 26 is no number of CommandError: write a broker_core.errors.ServerError",
        ),
        ({"code": -1}, ValueError, "code -1"),
        ({"cause": "DENIED"}, TypeError, r"cause must be a broker_core.Cause \(Cause.PLUGIN\), not str"),
        ({"reason": None}, TypeError, "reason must be a string, a short label for metrics"),
        ({"reason": []}, TypeError, "not list"),
        ({"plugin": 5}, TypeError, "plugin must be a string"),
        ({"counts": "no"}, TypeError, "counts must be a bool"),
        ({"counts": None}, TypeError, "not NoneType"),
    ],
)
def test_what_cannot_be_sent_is_refused_where_it_is_made(
    arguments: dict[str, Any], error: type[Exception], says: str
) -> None:
    with pytest.raises(error, match=says):
        ListingFailed(**{"message": "text", **arguments})


def test_a_number_of_the_protocol_is_its_code() -> None:
    failed = ListingFailed("later", code=14)  # type: ignore[arg-type]
    assert failed.code is ServerError.TooManyRequests
    assert not failed.counts
    with pytest.raises(TypeError, match="reason must be a string"):
        TooManyRequests("x", reason=None)  # type: ignore[arg-type]


def test_a_copy_says_the_same_and_was_never_raised() -> None:
    failure = ResponseTooLarge(10, 5, 1)
    with pytest.raises(ListingFailed):
        raise failure
    fresh = failure.copy()
    assert type(fresh) is ResponseTooLarge
    assert (str(fresh), vars(fresh)) == (str(failure), vars(failure))
    assert (fresh.__traceback__, failure.__traceback__ is None) == (None, False)

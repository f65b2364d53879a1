from __future__ import annotations

import pytest

from broker_core.catalog import (
    CatalogBusy,
    CatalogError,
    CatalogReadOnly,
    TopicInvalid,
    TopicMissing,
)
from broker_core.errors import Cause, ListingFailed
from broker_core.servers.kafka.row_error import ChangeRefused, RowError, code_of, error_of, error_row
from broker_core.wire.kafka import ErrorCode


@pytest.mark.parametrize(
    ("failure", "code"),
    [
        (CatalogBusy("x"), 7),
        (ListingFailed("x", cause=Cause.PERMITS), 7),
        (ListingFailed("x", cause=Cause.DENIED), 29),
        (ListingFailed("x", cause=Cause.PLUGIN), -1),
        (CatalogReadOnly("x"), 44),
        (TopicInvalid("x"), 40),
        (CatalogError("x"), -1),
    ],
)
def test_a_change_that_failed_has_a_code_and_says_why(
    failure: CatalogError | ListingFailed, code: int
) -> None:
    assert error_of(failure) == RowError(ErrorCode(code), "x")


def test_a_topic_that_is_gone_is_unknown_in_kafkas_words() -> None:
    assert error_of(TopicMissing("x")) == error_row(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    assert error_row(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION).message == (
        "This server does not host this topic-partition."
    )


def test_what_a_client_may_not_do_has_the_code_of_what_it_is() -> None:
    denied = ListingFailed("x", cause=Cause.DENIED)
    assert code_of(denied, ErrorCode.CLUSTER_AUTHORIZATION_FAILED) is ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    late = ListingFailed("x", cause=Cause.TIME)
    assert code_of(late, ErrorCode.CLUSTER_AUTHORIZATION_FAILED) is ErrorCode.REQUEST_TIMED_OUT


def test_a_refusal_says_what_it_was_given() -> None:
    error = RowError(ErrorCode.INVALID_CONFIG, "no")
    assert error_of(ChangeRefused(error)) is error
    assert str(ChangeRefused(error)) == "no"


def test_a_message_is_one_that_every_version_can_have() -> None:
    error = RowError(ErrorCode.INVALID_REQUEST, "\U0001f600" * 40_000)
    assert error.message is not None
    assert len(error.message.encode()) < 2**15
    assert RowError(ErrorCode.INVALID_REQUEST, None).message is None

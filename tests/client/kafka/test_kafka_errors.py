from __future__ import annotations

import pytest

from broker_core.client import ClientError, ConnectionLost, OperationTimeout, UnexpectedAnswer
from broker_core.client.kafka.kafka_errors import (
    KafkaException,
    NotControllerException,
    TimeoutException,
    TopicExistsException,
    UnknownServerException,
    kafka_error,
    may_pass,
    raise_for,
)
from broker_core.wire.kafka import ErrorCode


def test_a_code_is_the_exception_of_kafkas_name() -> None:
    failed = kafka_error(36, "Topic 'orders' already exists.")
    assert isinstance(failed, TopicExistsException)
    assert (failed.code, failed.message) == (36, "Topic 'orders' already exists.")
    assert str(failed) == "TOPIC_ALREADY_EXISTS: Topic 'orders' already exists."
    assert isinstance(failed, ClientError)


def test_without_a_text_the_general_one_is_said() -> None:
    assert str(kafka_error(17)) == (
        "INVALID_TOPIC_EXCEPTION: The request attempted to perform an operation on an invalid topic."
    )


def test_no_error_is_none() -> None:
    assert kafka_error(0, "ignored") is None
    raise_for(0)
    with pytest.raises(TopicExistsException):
        raise_for(36)


def test_a_code_that_is_not_known_is_kept() -> None:
    failed = kafka_error(4711, "odd")
    assert isinstance(failed, UnknownServerException)
    assert (failed.code, str(failed)) == (4711, "error code 4711: odd")


def test_every_code_of_the_protocol_here_has_an_exception_and_a_text_of_its_own() -> None:
    general = UnknownServerException.general
    for code in set(ErrorCode) - {ErrorCode.NONE, ErrorCode.UNKNOWN_SERVER_ERROR}:
        failed = kafka_error(code)
        assert failed is not None
        assert not isinstance(failed, UnknownServerException), code.name
        assert (failed.code, failed.message != general) == (code, True)


def test_a_long_text_of_a_server_is_cut() -> None:
    failed = kafka_error(42, "x" * 100_000)
    assert failed is not None
    assert len(str(failed)) < 2_100


def test_each_exception_has_a_code_of_its_own() -> None:
    codes = [kind.code for kind in KafkaException.__subclasses__()]
    assert len(set(codes)) == len(codes)


def test_a_time_out_is_one_of_the_lookup_client_too() -> None:
    assert isinstance(TimeoutException(), OperationTimeout)


@pytest.mark.parametrize(
    ("failed", "passing"),
    [
        (NotControllerException(), True),
        (TimeoutException(), True),
        (TopicExistsException(), False),
        (UnknownServerException(), False),
        (ConnectionLost("gone"), True),
        (UnexpectedAnswer("odd"), False),
    ],
)
def test_what_may_pass(failed: ClientError, *, passing: bool) -> None:
    assert may_pass(failed) is passing


def test_the_same_error_again_is_another_object() -> None:
    failed = kafka_error(4711, "odd")
    assert failed is not None
    copied = failed.copy()
    assert (type(copied), str(copied), copied.code) == (type(failed), str(failed), 4711)
    assert copied is not failed

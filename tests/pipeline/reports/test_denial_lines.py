from __future__ import annotations

from structlog.testing import capture_logs

from broker_core.access.asker import Access, Asker
from broker_core.errors import Cause, ListingFailed
from broker_core.names import NamespaceName, TopicName
from broker_core.pipeline.reports.finished_listings import log_denial, one_line_of_denials

_NAMESPACE = NamespaceName.parse("acme/orders")


def _denied(number: int | None) -> None:
    topic = None if number is None else TopicName("persistent", _NAMESPACE, f"t{number}")
    access = Access("describe", _NAMESPACE, topic, Asker(remote_address="127.0.0.1:5"))
    log_denial(access, ListingFailed(f"no right to {number}", cause=Cause.DENIED))


def test_the_denials_of_a_request_are_one_line_with_their_number_and_the_first_names() -> None:
    with capture_logs() as logs, one_line_of_denials():
        for start in (0, 500):  # of parts of the request
            with one_line_of_denials():
                for number in range(start, start + 500):
                    _denied(number)
        assert logs == []
    (line,) = logs
    assert (line["event"], line["peer"]) == ("denied by the rules", "127.0.0.1:5")
    assert (line["message"], line["denials"]) == ("no right to 0", 1000)
    assert line["topics"] == [f"persistent://acme/orders/t{number}" for number in range(5)]


def test_one_denial_is_a_line_as_ever_and_none_is_no_line() -> None:
    with capture_logs() as logs:
        with one_line_of_denials():
            pass
        with one_line_of_denials():
            _denied(None)
        _denied(3)
    assert [(line["message"], "denials" in line) for line in logs] == [
        ("no right to None", False),
        ("no right to 3", False),
    ]


def test_the_lines_of_a_request_that_fails_are_not_lost() -> None:
    with capture_logs() as logs:
        try:
            with one_line_of_denials():
                _denied(1)
                raise TimeoutError
        except TimeoutError:
            pass
    assert [line["message"] for line in logs] == ["no right to 1"]

"""What waits for one stream: in order, bounded, and nothing for a stream that begins anew."""

from __future__ import annotations

from broker_core.access.asker import Asker
from broker_core.errors import ListingFailed
from broker_core.servers.http.api.events.event_text import EVENTS
from broker_core.servers.http.api.events.subscriber import Subscriber
from broker_core.service import ChangeEvent


def event(number: int = 0, size: int = 10) -> ChangeEvent:
    return ChangeEvent(f"{number:08x}", f"{number + 1:08x}", {EVENTS: (b"x" * size,)})


def test_changes_wait_in_order() -> None:
    subscriber = Subscriber(Asker())
    events = [event(number) for number in range(3)]
    for each in events:
        subscriber.changed(each)
    assert subscriber.woken.is_set()
    assert [subscriber.next() for _ in range(4)] == [b"x" * 10] * 3 + [None]
    assert not subscriber.lags


def test_a_reader_that_is_too_far_behind_begins_anew() -> None:
    for events in ([event(number) for number in range(65)], [event(size=700_000)] * 2, [None]):
        subscriber = Subscriber(Asker())
        for each in events:
            subscriber.changed(each)
        assert subscriber.lags
        assert subscriber.next() is None
        subscriber.changed(event())  # it is among all topics
        assert subscriber.next() is None
        subscriber.begin_anew()
        subscriber.changed(event())
        assert (subscriber.lags, subscriber.next() is None) == (False, False)


def test_a_suspended_stream_hears_nothing_and_then_all() -> None:
    subscriber, failure = Subscriber(Asker()), ListingFailed("gate")
    subscriber.resume()
    assert not subscriber.lags
    subscriber.changed(event())
    subscriber.suspend(failure)
    subscriber.changed(event())
    assert (subscriber.failure, subscriber.next(), subscriber.lags) == (failure, None, False)
    subscriber.resume()
    assert subscriber.lags


def test_an_end_has_a_reason_or_none() -> None:
    subscriber, failure = Subscriber(Asker()), ListingFailed("no right")
    subscriber.end(failure)
    assert subscriber.ended is failure
    other = Subscriber(Asker())
    other.close()
    assert other.is_closed
    assert other.woken.is_set()

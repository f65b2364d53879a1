"""Places of streams: bounded for all, shared out, and at an end with their server."""

from __future__ import annotations

from contextlib import ExitStack

import pytest

from broker_core.errors import Cause, TooManyRequests
from broker_core.servers.http.api.admission import ApiAdmission
from broker_core.servers.http.api.stream_places import StreamPlaces
from tests.support.eventually import eventually
from tests.support.followers import RecordingFollower


async def test_nobody_has_all_places_and_there_is_an_end() -> None:
    places, admission, stream = StreamPlaces(), ApiAdmission(64), RecordingFollower()  # 16 streams
    with ExitStack() as open_streams:
        for _ in range(8):
            open_streams.enter_context(places.place(admission, "a", stream))
        with pytest.raises(TooManyRequests) as refused:
            open_streams.enter_context(places.place(admission, "a", stream))
        assert refused.value.cause is Cause.QUEUE
        with ExitStack() as others:
            for number in range(8):
                others.enter_context(places.place(admission, f"b{number // 2}", stream))
            with pytest.raises(TooManyRequests):
                others.enter_context(places.place(admission, "c", stream))
        open_streams.enter_context(places.place(admission, "c", stream))
        assert places.total() == 9
        admission.draining.set()
        await eventually(lambda: stream.is_closed)
    assert places.total() == 0
    await places.stop()

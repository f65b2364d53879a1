"""The topics of a question as a stream of server-sent events: all of them, then the changes."""

from __future__ import annotations

from broker_core.servers.http.api.events.topic_stream import EVENT_STREAM, LAST_EVENT_ID, stream_topics

__all__ = ["EVENT_STREAM", "LAST_EVENT_ID", "stream_topics"]

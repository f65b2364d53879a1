from __future__ import annotations

from broker_core.errors import Cause
from broker_core.pipeline.answer import bad_topics


def test_it_is_the_plugin_that_failed() -> None:
    failure = bad_topics("returned a bad topic")
    assert (failure.cause, failure.reason, failure.plugin) == (Cause.PLUGIN, "bad_topics", None)
    assert bad_topics("plugin 'p' returned a bad topic", "p").plugin == "p"

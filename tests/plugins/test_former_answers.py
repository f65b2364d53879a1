from __future__ import annotations

from typing import Any

from broker_core.memory.permits import Permits
from broker_core.pipeline.remembered.answer_store import AnswerStore
from broker_core.pipeline.remembered.last_good_answers import LastGoodAnswers
from broker_core.plugins.former_answers import FormerAnswer, LastAnswerKeeper
from tests.support.plugins import PluginOf, asked, loaded


def test_the_pipeline_remembers_as_the_chain_asks() -> None:
    permits = Permits()
    store = AnswerStore(permits.snapshots, permits.leases)
    memory: LastAnswerKeeper = LastGoodAnswers(store, lambda _: frozenset()).to(asked(), None)
    plugin: Any = loaded(PluginOf(list_topics=lambda: None), on_failure="stale")
    assert memory.recalled(plugin, None, 1.0) is None
    memory.answered(plugin, None, 1.0)
    assert memory.recalled(plugin, None, 3.0) == FormerAnswer("pass_through", None, 2.0)

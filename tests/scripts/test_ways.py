from __future__ import annotations

import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

from broker_core.concurrency import finished
from broker_core.names import Mode, NamespaceName
from broker_core.snapshots.snapshot import Snapshot
from scripts.ways import Trace, Way, ranks_of

PYPROJECT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))


def traced(request: Callable[[], object]) -> Way:
    trace, before = Trace(ranks_of(PYPROJECT)), sys.getprofile()
    sys.setprofile(trace.note)
    try:
        return trace.way(request)
    finally:
        sys.setprofile(before)


def test_layers_are_those_of_the_contract() -> None:
    ranks = ranks_of(PYPROJECT)
    assert ranks["servers"] < ranks["pipeline"] < ranks["catalog"] == ranks["upstream"] < ranks["names"]
    core = Path(__file__).parents[2] / "broker_core"
    assert {each.stem for each in core.iterdir() if each.suffix == ".py" or each.is_dir()} >= set(ranks)


def test_a_call_down_is_no_climb() -> None:
    way = traced(lambda: NamespaceName.parse("public/default"))
    assert "names/namespace_name" in way.modules
    assert not way.climbs


def test_a_lower_module_that_calls_a_higher_one_climbs() -> None:
    nothing = Snapshot.of_nothing("x", NamespaceName("t", "n"), Mode.ALL)

    class NoChanges:
        version = nothing.version

        def changed(self, *_: object) -> tuple[()]:
            return ()

    way = traced(lambda: finished(nothing.moving(NoChanges())))  # type: ignore[arg-type]
    assert way.climbs == {("concurrency/cpu_threads", "snapshots/snapshot")}
    assert way.size == (len(way.modules), 1)

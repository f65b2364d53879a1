"""A request's properties read like a mapping, and nothing can write them."""

from __future__ import annotations

import copy
import pickle
from types import MappingProxyType
from typing import Any

import pytest

from broker_core.plugin_api.listing_request import Properties

PAIRS = {"team": "a", "level": "b"}


class Writes:
    """Whatever dictionary it is compared or joined with, it writes to."""

    def _write(self, other: Any) -> Any:
        other["team"] = "evil"
        return True

    __eq__ = __ror__ = __or__ = __and__ = __rand__ = __sub__ = __lt__ = _write
    __hash__ = None  # type: ignore[assignment]


def test_they_read_as_a_proxy_of_a_dict_does() -> None:
    own, proxy = Properties(PAIRS), MappingProxyType(PAIRS)
    assert own == PAIRS
    assert own == Properties([("level", "b"), ("team", "a")])
    assert own != {"team": "a"}
    assert (dict(own), len(own), list(own), own["team"]) == (PAIRS, 2, ["team", "level"], "a")
    assert ("team" in own, "other" in own, own.get("other"), own.get("other", "x")) == (
        True,
        False,
        None,
        "x",
    )
    assert (list(own.items()), list(own.values())) == (list(proxy.items()), list(proxy.values()))
    assert own.keys() & {"team"} == {"team"}
    assert (list(reversed(own)), own | {"x": "y"}, {"x": "y"} | own) == (
        list(reversed(proxy)),
        proxy | {"x": "y"},
        {"x": "y"} | proxy,
    )
    assert own | Properties({"x": "y"}) == {**PAIRS, "x": "y"}
    assert repr(own) == repr(PAIRS)
    assert not Properties()
    with pytest.raises(KeyError):
        own["other"]


def test_a_copy_and_a_pickle_have_the_same() -> None:
    own = Properties(PAIRS)
    assert copy.deepcopy(own) is own
    assert pickle.loads(pickle.dumps(own)) == own
    own.copy()["team"] = "evil"
    assert own == PAIRS


def test_nothing_writes_to_them() -> None:
    given = dict(PAIRS)
    own = Properties(given)
    given["team"] = "evil"
    for use in (
        lambda: own == Writes(),
        lambda: own != Writes(),
        lambda: own | Writes(),
        lambda: Writes() | own,
        lambda: own.keys().mapping == Writes(),  # type: ignore[attr-defined]
        lambda: own.items().mapping | Writes(),  # type: ignore[attr-defined]
        lambda: own.values().mapping == Writes(),  # type: ignore[attr-defined]
        lambda: Properties.__init__(own, {"team": "evil"}),
        lambda: object.__setattr__(own, "_pairs", {"team": "evil"}),
    ):
        try:
            use()
        except (AttributeError, TypeError):
            pass
        assert dict(own) == PAIRS

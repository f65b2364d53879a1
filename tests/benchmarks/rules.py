"""Rules about topics: what the filter of a role takes once, and after a change: ``python -m tests.benchmarks.rules``.

1,000 rules, nine of ten of which allow and the others deny, over 1,000,000 names in their order.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Mapping
from typing import TypeVar

import pyarrow as pa

from broker_core.access.asker import Asker
from broker_core.access.authorization import Authorization
from broker_core.listing.listing import Listing, Selection, data_of
from broker_core.listing.selections.topic_filter import TopicFilter, filtered
from broker_core.names import Mode, NamespaceName
from broker_core.settings import AuthorizationSettings
from tests.support.narrowed import present

__all__ = ["measured"]

_T = TypeVar("_T")
_NAMESPACE = NamespaceName("acme", "shop")


def measured(rules: int, names: int) -> Mapping[str, float]:
    """Milliseconds of each step, and how many names are left."""
    each = max(names // rules, 1)
    column = pa.array(
        [
            f"persistent://{_NAMESPACE}/orders-{number // each:06d}-region-{number % each:06d}"
            for number in range(names)
        ],
        pa.large_string(),
    )
    listing = Listing.from_names(_NAMESPACE, Mode.PERSISTENT, column)
    for chunk in data_of(listing).chunks:  # as the catalogue's are
        chunk.make_forms()
    found: dict[str, float] = {}
    compiled = _timed(found, "compile", lambda: _filter(rules))
    once = _timed(found, "role_once", lambda: filtered(listing.all(), compiled))
    _timed(found, "hash_once", lambda: once.topics_hash)
    _timed(found, "again", lambda: _hashed(filtered(listing.all(), compiled)))
    changed = listing.with_changes(
        column[names // 2 : names // 2 + 1], [f"persistent://{_NAMESPACE}/orders-x"]
    )
    left = _timed(found, "after_a_change", lambda: _hashed(filtered(changed.all(), compiled)))
    return found | {"names_left": len(left)}


def _filter(rules: int) -> TopicFilter:
    table = {"roles": ["team"], "namespaces": ["acme/*"], "actions": ["list"]}
    made = [
        table
        | ({"topics": [f"orders-{number:06d}-*"]} if number % 10 else {})
        | ({} if number % 10 else {"effect": "deny", "topics": [f"orders-{number + 1:06d}-region-0000*"]})
        for number in range(rules)
    ]
    authorization = Authorization(AuthorizationSettings.model_validate({"rules": made}))
    return present(authorization.filter(Asker("team"), str(_NAMESPACE)))


def _hashed(selection: Selection) -> Selection:
    _ = selection.topics_hash
    return selection


def _timed(found: dict[str, float], name: str, work: Callable[[], _T]) -> _T:
    started = time.perf_counter()
    done = work()
    found[f"{name}_ms"] = round((time.perf_counter() - started) * 1000, 2)
    return done


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rules", type=int, default=1000)
    options.add_argument("--names", type=int, default=1_000_000)
    given = options.parse_args()
    print(json.dumps(measured(given.rules, given.names), indent=2))

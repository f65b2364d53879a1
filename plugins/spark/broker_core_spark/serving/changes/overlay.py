"""The overlay of one namespace: its changed topics since the generation, as columns for fast matching.

Each name has its final state and the version of its last change. Names without a change are not in the overlay.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from broker_core import Listing, Selection
from broker_core.change_log import Change
from broker_core.names import NON_PERSISTENT, PERSISTENT, Mode, NamespaceName
from broker_core.patterns import TopicsPattern
from broker_core_spark.arrow_columns import Array

__all__ = ["NameState", "Overlay", "TooManyNames", "states_after"]


class TooManyNames(Exception):
    """More names changed than ``overlay_limit`` allows."""


@dataclass(frozen=True, slots=True)
class NameState:
    """A name after a change: whether it is listed, its properties, and the version number of the change."""

    listed: bool
    properties: Mapping[str, str]
    version: int


def states_after(changes: Sequence[Change], property_keys: Sequence[str], limit: int) -> dict[str, NameState]:
    """The final state of each full name that ``changes`` (oldest first) concern.

    An update that leaves the selecting properties as they are concerns no name. Raises :exc:`TooManyNames` before more
    than ``limit`` names are made: one change may list a million partitions.
    """
    states: dict[str, NameState] = {}
    for change in changes:
        before, after = change.properties_before, change.properties_after
        others = any(before.get(key) != after.get(key) for key in property_keys)
        gone = change.listed_before.without(change.listed_after)
        shown = change.listed_after if others else change.listed_after.without(change.listed_before)
        if len(gone) + len(shown) > limit:
            raise TooManyNames
        name = str(change.name)
        for each in gone.names(name):
            states[each] = NameState(listed=False, properties={}, version=change.version)
        for each in shown.names(name):
            states[each] = NameState(listed=True, properties=after, version=change.version)
        if len(states) > limit:
            raise TooManyNames
    return states


@dataclass(frozen=True, slots=True)
class Overlay:
    """The changed names in the order of a listing of mode ``ALL``. All arrays are aligned with :attr:`names`.

    - ``listed``: whether the name is listed now.
    - ``versions``: the number of the version of its last change.
    - ``property_values``: its value of each selecting property, or ``None``.
    - ``first_persistent``: the first row of the persistent domain.
    """

    names: Listing
    listed: Array
    versions: Array
    property_values: Mapping[str, Array]
    first_persistent: int = 0

    @classmethod
    def nothing(cls, namespace: NamespaceName, property_keys: Sequence[str] = ()) -> Overlay:
        """An overlay without changes."""
        return cls(
            Listing.from_columns(namespace, Mode.ALL),
            np.empty(0, bool),
            np.empty(0, np.int64),
            {key: np.empty(0, object) for key in property_keys},
        )

    def __len__(self) -> int:
        return len(self.names)

    def with_states(self, states: Mapping[str, NameState]) -> Overlay:
        """The overlay after more changes. Costs a binary search for each name, and a copy of the columns."""
        # Listings are without system topics, and so are overlays.
        changed = Listing.from_names(self.names.namespace, Mode.ALL, list(states)).names
        if not len(changed):
            return self
        at, known = self.names.locate(changed)
        put = at[~known]
        names = self.names.with_changes((), changed)
        listed = np.insert(self.listed, put, False)
        versions = np.insert(self.versions, put, 0)
        none = np.full(len(put), None, object)
        values: dict[str, Array] = {
            key: np.insert(column, put, none) for key, column in self.property_values.items()
        }

        rows, _ = names.locate(changed)
        final = [states[name] for name in changed.to_pylist()]
        listed[rows] = [state.listed for state in final]
        versions[rows] = [state.version for state in final]
        for key, column in values.items():
            column[rows] = [state.properties.get(key) for state in final]
        bound, _ = names.locate([f"{PERSISTENT}://{self.names.namespace}/"])
        return Overlay(names, listed, versions, values, int(bound[0]))

    def matching_is_quick(self, pattern: TopicsPattern | None) -> bool:
        """Whether :meth:`matching` takes about a millisecond at most."""
        return pattern is None or self.names.all().matching_is_quick(pattern)

    def matching(self, mode: Mode, pattern: TopicsPattern | None, *, after: int = -1) -> Selection:
        """The names that a mode and a pattern match, listed or not.

        Only names that changed after version ``after``.
        """
        low = 0 if mode.lists(NON_PERSISTENT) else self.first_persistent
        high = len(self) if mode.lists(PERSISTENT) else self.first_persistent
        names = self.names.range(low, high)
        if after >= 0:
            names = names.mask(self.versions[low:high] > after)
        return names if pattern is None else names.matching(pattern)

    def put_into(self, answer: Selection, matching: Selection, properties: Mapping[str, str]) -> Selection:
        """An answer after the changes of the names that its mode and pattern match, in a listing of its own; ``answer``
        itself if they change nothing.

        ``properties`` are the question's. The core has matched the added names, so nothing is verified.
        """
        rows = matching.row_array
        shown: Array = self.listed[rows]
        for key, value in properties.items():
            shown = shown & (self.property_values[key][rows] == value)
        return answer.with_changes(matching.mask(~shown).names, matching.mask(shown))

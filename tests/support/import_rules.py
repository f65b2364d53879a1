"""The expected result of importing a file, by the rules in plain Python, and files to test them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from hypothesis import strategies as st

from broker_core.names import TopicName

__all__ = ["LINES", "Line", "Model", "after_import", "as_rows", "listed_names"]

_PROPERTIES = st.none() | st.dictionaries(st.sampled_from("xy"), st.sampled_from("12"))
Line = tuple[str, str, int | None, dict[str, str] | None]
LINES = st.lists(
    st.tuples(
        st.sampled_from(["a", "b", "a-partition-0", "a-partition-3", "a-partition-0-partition-1", "é😀"]),
        st.sampled_from(["", "persistent://a/b/", "non-persistent://a/b/"]),
        st.none() | st.integers(0, 3),
        _PROPERTIES,
    ),
    max_size=12,
)


@dataclass
class Model:
    """A topic by the rules in plain Python: -1 of ``listed`` is the plain name."""

    listed: set[int] = field(default_factory=set)
    properties: dict[str, str] = field(default_factory=dict)

    @property
    def pair(self) -> bool:
        return -1 in self.listed and len(self.listed) > 1


@dataclass
class _Told:
    """What one file says about a topic: of its own name, and of its partitions."""

    own: bool | None = None  # false: properties alone
    properties: dict[str, str] | None = None
    partitions: set[int] = field(default_factory=set)
    of_partitions: dict[str, str] | None = None
    declared: bool = False


def after_import(there: dict[str, Model], lines: list[Line], *, exact: bool) -> dict[str, Model] | None:
    """The topics after an import by their own full names, ``None`` if it is refused."""
    file: dict[str, _Told] = {}
    for name, prefix, partitions, properties in lines:
        full = TopicName.parse(f"{prefix or 'persistent://a/b/'}{name}")
        of_a_partition = not partitions and full.partition >= 0
        told = file.setdefault(str(full.partitioned_name if of_a_partition else full), _Told())
        if partitions or of_a_partition:
            told.partitions |= set(range(partitions)) if partitions else {full.partition}
            told.declared = told.declared or bool(partitions)
            told.of_partitions = told.of_partitions if properties is None else properties
        else:
            told.own = bool(told.own) or partitions is not None or properties is None
            told.properties = told.properties if properties is None else properties
    after = {} if exact else {own: Model(set(model.listed), model.properties) for own, model in there.items()}
    for own, told in file.items():
        before = there.get(own, Model())
        known = set() if exact else before.listed
        given = told.properties if told.own is not None else told.of_partitions
        listed = set(told.partitions)
        if told.own is not None and told.partitions:
            alone = told.own is False and (told.declared or bool(known - {-1}))
            if not alone:
                if (told.properties or {}) != (told.of_partitions or {}):
                    return None
                given = told.properties if told.properties is not None else told.of_partitions
                listed.add(-1)
        elif told.own or (told.own is False and not known):
            listed.add(-1)
        model = Model(listed | known, before.properties if given is None else given)
        both = -1 in listed and len(listed) > 1
        if not exact and before.listed and model.pair and not both and listed and listed != known:
            wanted = given if given is not None else before.properties if before.pair else {}
            if wanted != before.properties:
                return None
        after[own] = model
    return after


def as_rows(lines: Iterable[Line]) -> list[dict[str, object]]:
    """The lines as the objects of a file."""
    return [
        {"name": prefix + name, "partitions": partitions, "properties": properties}
        for name, prefix, partitions, properties in lines
    ]


def listed_names(topics: Mapping[str, Model]) -> dict[str, dict[str, str]]:
    """Every listed full name with its properties."""
    return {
        own if index < 0 else f"{own}-partition-{index}": topic.properties
        for own, topic in topics.items()
        for index in topic.listed
    }

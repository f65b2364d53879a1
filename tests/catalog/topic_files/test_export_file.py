from __future__ import annotations

import io
import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker_core.catalog.catalog_errors import ExportRefused, PairRefused
from broker_core.catalog.store.sqlite_catalog import SqliteCatalog
from broker_core.catalog.topic_decisions import creation
from broker_core.catalog.topic_files.export_file import ExportFormat, export_topics, has_odd_names
from broker_core.catalog.topic_files.import_file import import_topics
from broker_core.names import NamespaceName, TopicName
from tests.support.examples import examples

NAMESPACE = NamespaceName("a", "b")
OTHER = NamespaceName("c", "d")
NOW = datetime(2026, 11, 22, tzinfo=UTC)


def bring(catalog: SqliteCatalog, data: str, namespace: NamespaceName = NAMESPACE) -> None:
    import_topics(catalog, namespace, io.BytesIO(data.encode()))


def exported(catalog: SqliteCatalog, form: ExportFormat = "names") -> list[str]:
    target = io.BytesIO()
    written = export_topics(catalog, NAMESPACE, target, form)
    lines = target.getvalue().decode().split("\n")
    assert lines.pop() == ""
    assert len(lines) == written
    return lines


def parsed(lines: list[str]) -> list[dict[str, object]]:
    """JSON lines without the ids."""
    return [{key: value for key, value in json.loads(line).items() if key != "topic_id"} for line in lines]


def test_names_are_local_where_they_are_persistent(catalog: SqliteCatalog) -> None:
    bring(catalog, "b\na\nnon-persistent://a/b/n\na-partition-1\n__change_events")
    assert exported(catalog) == ["__change_events", "a", "a-partition-1", "b", "non-persistent://a/b/n"]


def test_json_lines_have_partitions_and_properties(catalog: SqliteCatalog) -> None:
    catalog.create(TopicName("persistent", NAMESPACE, "a"), partitions=3, properties={"x": "1", "é": "ü"})
    properties = {"x": "1", "é": "ü"}
    bring(catalog, json.dumps({"name": "a", "partitions": 0, "properties": properties}))
    bring(catalog, "a-partition-7\nb-partition-2\nnon-persistent://a/b/n\nc-partition-1-partition-0")
    assert parsed(exported(catalog, "json")) == [
        {"name": "a", "partitions": 0, "properties": properties},
        {"name": "a", "partitions": 3, "properties": properties},
        {"name": "a-partition-7", "properties": properties},
        {"name": "b-partition-2"},
        {"name": "c-partition-1", "partitions": 1},
        {"name": "non-persistent://a/b/n"},
    ]


def test_nothing_is_an_empty_file(catalog: SqliteCatalog) -> None:
    assert exported(catalog) == exported(catalog, "json") == []


def test_a_first_name_that_would_be_taken_for_a_format_is_written_in_full(catalog: SqliteCatalog) -> None:
    bring(catalog, "persistent://a/b/{1}\n{2}")
    assert exported(catalog) == ["persistent://a/b/{1}", "{2}"]
    bring(catalog, 'persistent://a/b/{"3')
    assert exported(catalog) == ['persistent://a/b/{"3', "{1}", "{2}"]


def test_what_plain_lines_cannot_carry_is_refused(catalog: SqliteCatalog) -> None:
    assert not has_odd_names(catalog, NAMESPACE)
    bring(catalog, '{"name": "x\\r"}')
    with pytest.raises(ExportRefused, match="a tab, or white space at an end"):
        exported(catalog)
    assert has_odd_names(catalog, NAMESPACE)
    bring(catalog, '{"name": "multi\\nline"}')
    with pytest.raises(
        ExportRefused, match=r"'multi\\nline' has a line feed in its name: export as JSON lines"
    ):
        exported(catalog)


def test_more_partitions_than_a_line_may_declare(
    catalog: SqliteCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    bring(catalog, "a-partition-0\na-partition-1\na-partition-2\na-partition-3")
    monkeypatch.setattr("broker_core.catalog.topic_files.export_file.MAX_PARTITIONS", 2)
    assert parsed(exported(catalog, "json")) == [
        {"name": "a", "partitions": 2},
        {"name": "a-partition-2"},
        {"name": "a-partition-3"},
    ]


NAMES = st.lists(
    st.tuples(
        st.text(min_size=1, max_size=6).filter(lambda name: "/" not in name and "\0" not in name)
        | st.sampled_from(
            [
                "{",
                '{"a',
                '{ "a-partition-1',
                "[",
                "name,a",
                "NAME ;a",
                '"name",a',
                "\ufeff",
                " a",
                "a\t",
                "a",
                "a-partition-1",
                "a-partition-1-partition-0",
                "a\nb",
                "a\r",
            ]
        ),
        st.sampled_from(["", "non-persistent://a/b/"]),
        st.none() | st.integers(0, 3),
        st.none() | st.dictionaries(st.text(max_size=2), st.text(max_size=2), max_size=2),
    ),
    max_size=8,
)


@settings(max_examples=examples(10))
@given(NAMES, st.sampled_from(["names", "json"]))
def test_an_export_imports_as_the_same_set(
    tmp_path_factory: pytest.TempPathFactory,
    lines: list[tuple[str, str, int | None, dict[str, str] | None]],
    form: ExportFormat,
) -> None:
    data = "\n".join(
        json.dumps({"name": prefix + name, "partitions": partitions, "properties": properties})
        for name, prefix, partitions, properties in lines
    )
    folder = tmp_path_factory.mktemp("e")
    with SqliteCatalog(folder / "1.sqlite") as one, SqliteCatalog(folder / "2.sqlite") as two:
        try:
            bring(one, data)
        except PairRefused:
            return
        target = io.BytesIO()
        try:
            export_topics(one, NAMESPACE, target, form)
        except ExportRefused:
            assert form == "names"
            assert has_odd_names(one, NAMESPACE)
            return
        import_topics(two, NAMESPACE, io.BytesIO(target.getvalue()))
        assert exported(two, "json") == exported(one, "json") or form == "names"
        if not has_odd_names(one, NAMESPACE):
            assert exported(two) == exported(one)


def test_progress_is_told(catalog: SqliteCatalog) -> None:
    bring(catalog, "\n".join(f"t{number}" for number in range(25_000)))
    seen: list[int] = []
    export_topics(catalog, NAMESPACE, io.BytesIO(), progress=seen.append)
    assert seen == [10_000, 20_000, 25_000]


def test_it_is_the_state_of_one_moment(catalog: SqliteCatalog) -> None:
    bring(catalog, "\n".join(f"t{number:06d}" for number in range(20_000)))

    class Changing(io.BytesIO):
        def write(self, data: object) -> int:
            if not self.tell():
                bring(catalog, "zzz")
            return super().write(data)  # type: ignore[arg-type]

    target = Changing()
    assert export_topics(catalog, NAMESPACE, target) == 20_000
    assert b"zzz" not in target.getvalue()
    assert catalog.topic(TopicName.parse("persistent://a/b/zzz")) is not None


def test_ids_configs_and_replicas_come_back(catalog: SqliteCatalog, tmp_path: Path) -> None:
    configs = {"retention.ms": "1", "cleanup.policy": "compact"}
    for local, partitions in (("a", 3), ("b", 0)):
        name = TopicName("persistent", NAMESPACE, local)
        catalog.edit(name, creation(name, partitions, {"x": "1"}, configs=configs, replication=3))
    bring(catalog, "c\na-partition-7\nnon-persistent://a/b/n")
    target = io.BytesIO()
    export_topics(catalog, NAMESPACE, target, "json")
    with SqliteCatalog(tmp_path / "two.sqlite") as other:
        import_topics(other, NAMESPACE, io.BytesIO(target.getvalue()))
        with catalog.topics(NAMESPACE) as (_, ours), other.topics(NAMESPACE) as (_, theirs):
            assert [replace(each, created=NOW) for each in theirs] == [
                replace(each, created=NOW) for each in ours
            ]

"""Ids, configs and replicas of imported files: given once, kept, and never those of another topic."""

from __future__ import annotations

import io
import json
import subprocess
import uuid
from pathlib import Path

from broker_core.catalog.store.sqlite_catalog import SqliteCatalog
from broker_core.catalog.topic_files.import_file import ImportReport, import_topics
from broker_core.change_log import CatalogVersion, Changes
from broker_core.guards import Deletions
from broker_core.names import NamespaceName, TopicName
from broker_core.names.topic_id import topic_id_text
from tests.catalog.filled import read
from tests.support.forked_programs import forked_program
from tests.support.narrowed import of_type

NAMESPACE = NamespaceName("a", "b")


def bring(
    catalog: SqliteCatalog, *lines: object, exact: Deletions | None = None, dry_run: bool = False
) -> ImportReport:
    data = "\n".join(json.dumps(line) for line in lines)
    return import_topics(catalog, NAMESPACE, io.BytesIO(data.encode()), exact=exact, dry_run=dry_run)


def facts(catalog: SqliteCatalog, local: str) -> tuple[uuid.UUID, dict[str, str], int | None]:
    record = read(catalog, local)
    return record.topic_id, dict(record.configs), record.replication


def test_a_new_topic_has_the_id_configs_and_replicas_of_its_line(catalog: SqliteCatalog) -> None:
    first, second = uuid.uuid4(), uuid.uuid4()
    configs = {"retention.ms": "1"}
    report = bring(
        catalog,
        {
            "name": "a",
            "partitions": 2,
            "topic_id": topic_id_text(first),
            "configs": configs,
            "replication": 3,
        },
        {"name": "b-partition-1", "topic_id": second.hex},
        {"name": "b-partition-3", "replication": 2.0},
    )
    assert (report.created, report.renewed_ids) == (2, 0)
    assert facts(catalog, "a") == (first, configs, 3)
    assert facts(catalog, "b") == (second, {}, 2)
    assert catalog.topic_by_id(second) == read(catalog, "b")


def test_a_topic_keeps_its_id_and_gets_configs_and_replicas(catalog: SqliteCatalog) -> None:
    before = catalog.create(TopicName("persistent", NAMESPACE, "a"), partitions=2)
    line = {"name": "a", "topic_id": topic_id_text(uuid.uuid4()), "configs": {"retention.ms": "1"}}
    assert bring(catalog, line).updated == 1
    assert facts(catalog, "a") == (before.topic_id, {"retention.ms": "1"}, None)
    assert read(catalog, "a").partitions == 2, "of configs alone, partitions are those that are there"
    assert bring(catalog, line).unchanged == 1
    assert bring(catalog, {"name": "a", "replication": 2}).updated == 1
    assert bring(catalog, {"name": "a", "configs": {}}).updated == 1
    assert facts(catalog, "a") == (before.topic_id, {}, 2)
    assert bring(catalog, {"name": "a", "configs": {}}, exact=Deletions(mass=True)).updated == 1, (
        "without partitions"
    )
    changes = of_type(catalog.changes(NAMESPACE, CatalogVersion(catalog.catalog_id, 1)), Changes)
    assert [dict(each.configs_after) for each in changes if each.name.local == "a"] == [
        {"retention.ms": "1"},
        {"retention.ms": "1"},
        {},
        {},
    ]


def test_an_id_of_another_topic_or_of_one_that_was_deleted_is_not_given_again(catalog: SqliteCatalog) -> None:
    there = catalog.create(TopicName.parse("persistent://other/space/a")).topic_id
    gone = catalog.create(TopicName("persistent", NAMESPACE, "gone")).topic_id
    catalog.delete(TopicName("persistent", NAMESPACE, "gone"))
    twice = uuid.uuid4()
    ids = {"a": there, "gone": gone, "x": twice, "y": twice, "z": uuid.uuid4()}
    lines = [{"name": name, "topic_id": topic_id_text(topic_id)} for name, topic_id in ids.items()]
    assert bring(catalog, *lines, dry_run=True).renewed_ids == 3
    assert bring(catalog, *lines).renewed_ids == 3
    given = {name: read(catalog, name).topic_id for name in ids}
    assert [name for name in ids if given[name] == ids[name]] == ["x", "z"]
    assert len({*given.values(), there, gone}) == 7
    again = bring(catalog, *lines)
    assert (again.unchanged, again.renewed_ids) == (5, 0)
    catalog.deletion_delay = -1
    catalog.delete(TopicName("persistent", NAMESPACE, "gone"))
    bring(catalog, lines[1])
    assert read(catalog, "gone").topic_id == gone, "after the delay it may come back"


IMPORTING = """
import io, sys
from broker_core.catalog import SqliteCatalog, import_topics
from broker_core.names import NamespaceName
with SqliteCatalog(sys.argv[1]) as catalog:
    sys.stdin.readline()
    import_topics(catalog, NamespaceName("a", "b"), io.BytesIO(b"\\n".join(b"t%d" % n for n in range(2_000))))
    with catalog.topics(NamespaceName("a", "b")) as (_, topics):
        for record in topics:
            print(record.name.local, record.topic_id)
"""


def test_topics_without_ids_get_them_once_under_two_processes(tmp_path: Path) -> None:
    path = tmp_path / "c.sqlite"
    SqliteCatalog(path).close()
    command = [forked_program("python"), "-c", IMPORTING, str(path)]
    both = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(2)
    ]
    for process in both:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    one, other = (process.communicate()[0] for process in both)
    assert one == other
    assert one.count("\n") == len({line.split()[1] for line in one.splitlines()}) == 2_000

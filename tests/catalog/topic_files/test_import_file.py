from __future__ import annotations

import io
import json
import signal
import subprocess
import threading
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker_core.catalog.catalog_errors import CatalogBusy, CatalogUnusable, ImportRefused, PairRefused
from broker_core.catalog.store.change_log_writer import LogBounds
from broker_core.catalog.store.sqlite_catalog import SqliteCatalog
from broker_core.catalog.topic_files.import_file import ImportReport, import_topics
from broker_core.change_log import CatalogVersion, Changes, Gap, Operation
from broker_core.guards import Deletions, MassDeletion
from broker_core.names import NamespaceName, TopicName
from tests.catalog.filled import all_names, read
from tests.support.examples import examples
from tests.support.forked_programs import forked_program
from tests.support.import_rules import LINES, Line, Model, after_import, as_rows, listed_names
from tests.support.narrowed import of_type

NAMESPACE = NamespaceName("a", "b")


def bring(
    catalog: SqliteCatalog, *lines: object, exact: Deletions | None = None, dry_run: bool = False
) -> ImportReport:
    data = "\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines)
    return import_topics(catalog, NAMESPACE, io.BytesIO(data.encode()), exact=exact, dry_run=dry_run)


def test_names_that_come_again_are_counted(catalog: SqliteCatalog) -> None:
    report = bring(
        catalog,
        *({"name": "t", "partitions": 3}, '{"name": "t-partition-1"}', {"name": "t"}, {"name": "t"}),
        *({"name": "persistent://a/b/t"}, {"name": "non-persistent://a/b/t"}, {"name": "u", "partitions": 0}),
    )
    assert (report.lines, report.topics, report.repeats) == (7, 3, 3)
    # What the catalogue had before is no repetition within the file.
    assert bring(catalog, "t", "t-partition-7", "t-partition-7").repeats == 1


def test_names_that_come_again_far_apart_are_counted(
    catalog: SqliteCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("broker_core.catalog.topic_files.topic_file_reader.CHUNK_BYTES", 64)
    names = [f"t-{number}" for number in range(100)]
    report = bring(catalog, *names, *names, "t-7", "new")
    assert (report.names, report.repeats) == (202, 101)


def test_a_file_becomes_topics_at_one_version(catalog: SqliteCatalog) -> None:
    report = bring(
        catalog, "orders-eu", "orders-eu-partition-0", "orders-eu-partition-2", "x", "non-persistent://a/b/x"
    )
    assert report == ImportReport(5, 3, 3, 0, CatalogVersion(catalog.catalog_id, 1), names=5)
    assert set(all_names(catalog)) == {
        "persistent://a/b/orders-eu",
        "persistent://a/b/orders-eu-partition-0",
        "persistent://a/b/orders-eu-partition-2",
        "persistent://a/b/x",
        "non-persistent://a/b/x",
    }
    assert catalog.partitions(TopicName.parse("persistent://a/b/orders-eu")) == 3
    assert read(catalog, "orders-eu").topic_id.version == 4


def test_a_name_that_is_there_keeps_its_id_and_gets_the_new_properties(catalog: SqliteCatalog) -> None:
    bring(catalog, {"name": "a", "partitions": 2, "properties": {"x": "1", "y": "2"}}, {"name": "b"})
    before = read(catalog, "a")
    report = bring(catalog, {"name": "a", "properties": {"x": "3"}}, {"name": "b"}, {"name": "c"})

    assert (report.created, report.updated, report.unchanged) == (1, 1, 1)
    after = read(catalog, "a")
    assert after.topic_id == before.topic_id
    assert after.created == before.created
    assert after.properties == {"x": "3"}
    assert str(after.listed) == "0-1", "properties alone add no topic beside its partitions"
    assert catalog.version(NAMESPACE).number == 2


def test_properties_alone_change_properties(catalog: SqliteCatalog) -> None:
    catalog.create(TopicName.parse("persistent://a/b/orders"), partitions=3)
    assert bring(catalog, {"name": "orders", "properties": {"region": "eu"}}).updated == 1
    partitions = {f"persistent://a/b/orders-partition-{index}": {"region": "eu"} for index in range(3)}
    assert all_names(catalog) == partitions
    # In one file with the partitions, in whatever order, and beside further ones.
    bring(
        catalog,
        *({"name": "bills", "properties": {"region": "us"}}, {"name": "bills", "partitions": 1}),
        *({"name": "orders-partition-3"}, {"name": "orders", "properties": {"region": "asia"}}),
    )
    assert all_names(catalog) == {
        "persistent://a/b/bills-partition-0": {"region": "us"},
        **{f"persistent://a/b/orders-partition-{index}": {"region": "asia"} for index in range(4)},
    }


PLAIN = {"name": "x", "properties": {"region": "eu"}}
PARTITION = {"name": "x-partition-0", "properties": {"region": "us"}}


@pytest.mark.parametrize(
    "files",
    [
        [[PLAIN, PARTITION]],
        [[PARTITION, PLAIN]],
        [[PLAIN], [PARTITION]],
        [[PLAIN], ["x-partition-0"]],
        [[PLAIN], [{"name": "x", "partitions": 2, "properties": {"region": "us"}}]],
        [[PARTITION], [{"name": "x", "partitions": 0, "properties": {"region": "eu"}}]],
        [[PARTITION], ["x"]],
        [[{"name": "x"}], [PARTITION]],
        [[{"name": "x"}, PARTITION]],
    ],
)
def test_a_topic_beside_its_partition_with_other_properties_is_refused(
    catalog: SqliteCatalog, files: list[list[object]]
) -> None:
    for lines in files[:-1]:
        bring(catalog, *lines)
    before = all_names(catalog)
    with pytest.raises(PairRefused, match="'x' and partition 'x-partition-0' cannot both be there"):
        bring(catalog, *files[-1])
    assert all_names(catalog) == before


def test_a_pair_without_other_properties_is_listed(catalog: SqliteCatalog) -> None:
    bring(catalog, "x", "x-partition-0")
    bring(
        catalog, {"name": "y", "properties": {"k": "v"}}, {"name": "y-partition-2", "properties": {"k": "v"}}
    )
    assert all_names(catalog) == {
        **{f"persistent://a/b/{name}": {} for name in ("x", "x-partition-0")},
        **{f"persistent://a/b/{name}": {"k": "v"} for name in ("y", "y-partition-2")},
    }
    bring(catalog, {"name": "y", "properties": {"k": "w"}})
    assert all_names(catalog)["persistent://a/b/y-partition-2"] == {"k": "w"}
    with pytest.raises(PairRefused):
        bring(catalog, {"name": "y-partition-2", "properties": {"k": "other"}})


def test_an_exact_import_makes_the_namespace_the_file(catalog: SqliteCatalog) -> None:
    bring(catalog, {"name": "a", "partitions": 4, "properties": {"k": "v"}}, {"name": "b"}, {"name": "gone"})
    ids = {name: read(catalog, name).topic_id for name in ("a", "b")}
    lines = ({"name": "a", "partitions": 2}, {"name": "b", "properties": {"x": "1"}}, {"name": "new"})

    dry = bring(catalog, *lines, exact=Deletions(), dry_run=True)
    assert (dry.created, dry.updated, dry.deleted, dry.names_lost) == (1, 2, 1, 3)
    assert catalog.version(NAMESPACE).number == 1

    report = bring(catalog, *lines, exact=Deletions())
    assert (report.created, report.updated, report.deleted, report.names_lost) == (1, 2, 1, 3)
    assert all_names(catalog) == {
        "persistent://a/b/a-partition-0": {"k": "v"},
        "persistent://a/b/a-partition-1": {"k": "v"},
        "persistent://a/b/b": {"x": "1"},
        "persistent://a/b/new": {},
    }
    assert {name: read(catalog, name).topic_id for name in ids} == ids
    assert bring(catalog, *lines, exact=Deletions()).version.number == 2, "nothing to change"


def test_an_exact_import_is_guarded(catalog: SqliteCatalog) -> None:
    bring(catalog, *(f"t{number}" for number in range(2000)))
    half = [f"t{number}" for number in range(0, 2000, 2)]
    with pytest.raises(MassDeletion, match="1000 of 2000 listed names would be deleted, more than 200"):
        bring(catalog, *half, exact=Deletions())
    assert len(all_names(catalog)) == 2000
    assert bring(catalog, *half, exact=Deletions(most=1000)).names_lost == 1000
    with pytest.raises(MassDeletion):
        bring(catalog, exact=Deletions())
    assert bring(catalog, exact=Deletions(mass=True)).deleted == 1000
    assert all_names(catalog) == {}


def test_an_exact_import_of_nothing_is_refused_however_small_the_namespace(catalog: SqliteCatalog) -> None:
    bring(catalog, "a", "b")
    with pytest.raises(MassDeletion, match="the file has no topics, and a/b would lose all of its 2"):
        bring(catalog, exact=Deletions())
    assert len(all_names(catalog)) == 2


def test_names_without_properties_leave_those_that_are_there(catalog: SqliteCatalog) -> None:
    bring(catalog, {"name": "a", "properties": {"x": "1"}})
    assert bring(catalog, "a").unchanged == 1
    assert read(catalog, "a").properties == {"x": "1"}
    assert bring(catalog, {"name": "a", "properties": {}}).updated == 1
    assert read(catalog, "a").properties == {}
    assert bring(catalog, {"name": "a", "properties": {}}).unchanged == 1


def test_the_same_file_again_is_no_change(catalog: SqliteCatalog) -> None:
    lines = ["a", "b-partition-1", "b-partition-3", "b"]
    bring(catalog, *lines)
    report = bring(catalog, *lines)
    assert (report.unchanged, report.version.number) == (2, 1)
    assert bring(catalog).topics == 0
    assert catalog.version(NAMESPACE).number == 1


def test_an_empty_file_makes_no_namespace(catalog: SqliteCatalog) -> None:
    assert bring(catalog).version.number == 0
    assert catalog.namespaces() == []


def test_deleting_and_importing_changes_the_id(catalog: SqliteCatalog) -> None:
    bring(catalog, "a")
    old = catalog.delete(TopicName.parse("persistent://a/b/a"))
    bring(catalog, "a")
    assert read(catalog, "a").topic_id != old.topic_id


def test_the_log_has_what_an_import_changed(catalog: SqliteCatalog) -> None:
    bring(catalog, "a", "b")
    since = catalog.version(NAMESPACE)
    bring(catalog, {"name": "a", "properties": {"k": "v"}}, {"name": "b"}, {"name": "c", "partitions": 2})
    changes = of_type(catalog.changes(NAMESPACE, since), Changes)
    found = {change.name.local: change for change in changes}
    assert set(found) == {"a", "c"}
    assert found["a"].operation is Operation.UPDATE
    assert (found["a"].properties_before, found["a"].properties_after) == ({}, {"k": "v"})
    assert found["a"].topic_id == read(catalog, "a").topic_id
    assert found["c"].operation is Operation.CREATE
    assert list(found["c"].added) == list(read(catalog, "c").names)
    assert found["c"].topic_id == read(catalog, "c").topic_id


@pytest.mark.parametrize("rows", [0, 1, 4])
def test_an_import_beyond_the_bound_of_the_log_leaves_a_gap(tmp_path: Path, rows: int) -> None:
    with SqliteCatalog(tmp_path / "c.sqlite", log=LogBounds(rows=rows)) as catalog:
        bring(catalog, "z")
        since = catalog.version(NAMESPACE)
        bring(catalog, *(f"t{number}" for number in range(5)))
        assert isinstance(catalog.changes(NAMESPACE, since), Gap)
        now = catalog.version(NAMESPACE)
        assert isinstance(catalog.changes(NAMESPACE, now), Changes)
        bring(catalog, "one-more")
        assert isinstance(catalog.changes(NAMESPACE, now), Changes) == (rows > 0)


def test_a_wrong_line_takes_nothing_of_the_file(
    catalog: SqliteCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    bring(catalog, "there")
    with pytest.raises(ImportRefused, match="line 3: "):
        bring(catalog, "a", "b", "c/d", "e")
    monkeypatch.setattr(
        "broker_core.catalog.topic_files.topic_file_reader.CHUNK_BYTES", 1000
    )  # so that it comes in many chunks
    late = b"".join(b"%07d\n" % number for number in range(2000)) + b"\n"
    with pytest.raises(ImportRefused, match="line 2001: it is empty"):
        import_topics(catalog, NAMESPACE, io.BytesIO(late))
    assert set(all_names(catalog)) == {"persistent://a/b/there"}
    assert catalog.version(NAMESPACE).number == 1


@settings(max_examples=examples(38))
@given(
    st.lists(st.tuples(LINES, st.booleans()), max_size=4),
    st.sampled_from([LogBounds(), LogBounds(rows=2)]),
    st.sampled_from([1, 16]),
    st.sampled_from([64, 1 << 20]),
)
def test_imports_are_what_the_rules_say(
    tmp_path_factory: pytest.TempPathFactory,
    files: list[tuple[list[Line], bool]],
    log: LogBounds,
    alike: int,
    chunk: int,
) -> None:
    """Against the rules in plain Python; with few and many topics of a kind, in parts, with a log and a gap."""
    model: dict[str, Model] = {}
    with (
        pytest.MonkeyPatch.context() as patch,
        SqliteCatalog(tmp_path_factory.mktemp("i") / "c.sqlite", log=log) as catalog,
    ):
        patch.setattr("broker_core.catalog.topic_files.import_staging._ALIKE", alike)
        patch.setattr("broker_core.catalog.topic_files.topic_file_reader.CHUNK_BYTES", chunk)
        for lines, exact in files:
            before = catalog.version(NAMESPACE)
            state = all_names(catalog)
            rows = as_rows(lines)
            wanted = after_import(model, lines, exact=exact)
            allowed = Deletions(mass=True) if exact else None
            if wanted is None:
                with pytest.raises(PairRefused):
                    bring(catalog, *rows, exact=allowed)
                assert all_names(catalog) == state
                assert catalog.version(NAMESPACE) == before
                continue
            model = wanted
            report = bring(catalog, *rows, exact=allowed)
            found = all_names(catalog)
            assert found == listed_names(model)
            assert report.names_lost == (len(set(state) - set(found)) if exact else 0)
            assert (catalog.version(NAMESPACE).number > before.number) == (found != state)
            changes = catalog.changes(NAMESPACE, before)
            if isinstance(changes, Changes):
                assert {name for change in changes for name in change.added} == set(found) - set(state)
                assert {name for change in changes for name in change.removed} == set(state) - set(found)


def test_progress_is_told_and_may_end_the_import(tmp_path: Path) -> None:
    data = b"".join(b"topic-%07d\n" % number for number in range(40_000))
    with SqliteCatalog(tmp_path / "c.sqlite") as catalog:
        seen: list[tuple[str, int]] = []
        import_topics(catalog, NAMESPACE, io.BytesIO(data), progress=lambda *what: seen.append(what))
        assert ("read", len(data)) in seen
        assert ("write", 40_000) in seen

        class Enough(Exception):
            pass

        def stop_writing(phase: str, _amount: int) -> None:
            if phase == "write":
                raise Enough

        other = NamespaceName("c", "d")
        with pytest.raises(Enough):
            import_topics(catalog, other, io.BytesIO(data), progress=stop_writing)
        assert catalog.version(other).number == 0
        assert catalog.namespaces() == [NAMESPACE]


def test_reading_a_slow_file_locks_nobody_out(catalog: SqliteCatalog) -> None:
    reading = threading.Event()
    go_on = threading.Event()

    class Slow(io.RawIOBase):
        parts = iter([b"a\n", b"b\n", b""])

        def read(self, _size: int = -1, /) -> bytes:
            reading.set()
            go_on.wait(60)
            return next(self.parts)

    thread = threading.Thread(target=import_topics, args=(catalog, NAMESPACE, Slow()))
    thread.start()
    assert reading.wait(60)
    catalog.create(TopicName.parse("persistent://a/b/meanwhile"))
    go_on.set()
    thread.join(60)
    assert len(all_names(catalog)) == 3


def test_another_writer_is_waited_for_in_bounds(tmp_path: Path) -> None:
    with SqliteCatalog(tmp_path / "c.sqlite", busy_timeout=0.05) as catalog:
        other = catalog.connect()
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(CatalogBusy):
            bring(catalog, "a")
        other.execute("ROLLBACK")
        other.close()
        assert bring(catalog, "a").created == 1


def test_a_catalogue_that_went_is_an_error(catalog: SqliteCatalog) -> None:
    catalog.path.unlink()
    with pytest.raises(CatalogUnusable, match="There is no catalogue"):
        bring(catalog, "a")


_KILLED = """
import os, signal, sys
from broker_core.catalog import SqliteCatalog, import_topics
from broker_core.catalog.topic_files import import_file
from broker_core.names import NamespaceName

import_file._TICK = 50_000
where, ticks = sys.argv[1], int(sys.argv[2])

def kill(phase, _amount):
    global ticks
    if phase == "write":
        ticks -= 1
        if ticks == 0:
            os.kill(os.getpid(), signal.SIGKILL)

with SqliteCatalog(where) as catalog:
    import_topics(catalog, NamespaceName("a", "b"), sys.stdin.buffer, progress=kill)
"""


#: So many topics are written in some 19 ticks.
_MANY = 10_000


@pytest.mark.parametrize("ticks", [1, 15])
def test_killed_in_the_midst_it_leaves_nothing(tmp_path: Path, ticks: int) -> None:
    path = tmp_path / "c.sqlite"
    with SqliteCatalog(path) as catalog:
        bring(catalog, "there")
    data = b"".join(b"topic-%07d\n" % number for number in range(_MANY))
    killed = subprocess.run(
        [forked_program("python"), "-c", _KILLED, str(path), str(ticks)],
        input=data,
        check=False,
        capture_output=True,
    )
    assert killed.returncode == -signal.SIGKILL, killed.stderr.decode()
    assert path.stat().st_size > 0
    with SqliteCatalog(path) as catalog:
        assert set(all_names(catalog)) == {"persistent://a/b/there"}
        assert catalog.version(NAMESPACE).number == 1
        assert import_topics(catalog, NAMESPACE, io.BytesIO(data)).created == _MANY


def test_the_version_is_the_one_that_readers_see(catalog: SqliteCatalog) -> None:
    for name, number, dry_run in (("a", 1, False), ("a", 1, False), ("b", 2, False), ("c", 2, True)):
        found = bring(catalog, name, dry_run=dry_run).version
        now = catalog.version(NAMESPACE)
        assert (found.number, found.catalog_id, found.stamp) == (number, now.catalog_id, now.stamp)


def test_a_file_larger_than_the_caches(catalog: SqliteCatalog) -> None:
    lines = "".join(f'{{"name": "topic-{number * 7919 % 20_000}"}}\n' for number in range(20_000))
    report = import_topics(catalog, NAMESPACE, io.BytesIO(lines.encode()), caches=512 * 1024)
    assert (report.created, report.repeats) == (20_000, 0)
    assert len(all_names(catalog)) == 20_000

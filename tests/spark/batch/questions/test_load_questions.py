"""Questions of files and tables: reduced, each once, refused if brokers do not evaluate them, with places."""

from __future__ import annotations

import json
import os
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from broker_core.names import Mode
from broker_core_spark.batch.build_errors import InvalidPatterns
from broker_core_spark.batch.build_result import TOTALS_SCHEMA
from broker_core_spark.batch.questions.load_questions import (
    check_patterns,
    check_rows,
    load_questions,
    questions_of_rows,
    refused_patterns,
)
from broker_core_spark.errors import StoreFailed
from broker_core_spark.format.canonical_question import CanonicalQuestion
from broker_core_spark.store.file_at_address import addressed_file
from tests.support.files import file_with

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def jsonl(path: Path, *rows: Any) -> str:
    path.write_text(
        "\n".join(row if isinstance(row, str) else json.dumps(row) for row in rows), encoding="utf-8"
    )
    return str(path)


def test_what_is_the_same_question_is_asked_once(tmp_path: Path) -> None:
    source = jsonl(
        tmp_path / "p.jsonl",
        {
            "namespace": "a/b",
            "mode": "PERSISTENT",
            "pattern": "persistent://a/b/x.*",
            "properties": {"k": "1", "z": "2"},
        },
        {
            "namespace": "a/b",
            "pattern": "a/b/x.*",
            "properties": {"k": "1"},
            "count": 9,
            "error": 1,
            "seconds": 0.5,
        },
        "",
        {"namespace": "a/b", "mode": "all", "pattern": None, "properties": None},
        {"namespace": "a/b", "mode": "non-persistent", "pattern": ".*", "count": 2.0},
    )
    loaded = load_questions(source, property_keys=("k",))
    assert set(loaded.questions) == {
        CanonicalQuestion.of("a/b", Mode.PERSISTENT, "a/b/x.*", {"k": "1"}),
        CanonicalQuestion.of("a/b", Mode.ALL, None),
        CanonicalQuestion.of("a/b", Mode.NON_PERSISTENT, None),
    }
    assert [question.line for question in loaded.questions] == sorted(q.line for q in loaded.questions)
    assert (loaded.rows, loaded.duplicates, loaded.total_times) == (4, 1, 13)


@pytest.mark.parametrize(
    "pattern", ["(?=x)", "a{1001}", "*a", "a\\C", "kafka://x", "x" * 1025, "(.)\\1"], ids=lambda p: p[:9]
)
def test_what_no_broker_evaluates_is_refused_and_fails_nothing(pattern: str) -> None:
    loaded = questions_of_rows(
        [("here", {"namespace": "a/b", "pattern": pattern, "count": 3}), ("there", {"namespace": "a/b"})]
    )
    assert len(loaded.questions) == 1
    (refused,) = loaded.refused
    assert refused.pattern == pattern
    assert refused.reason
    assert (loaded.total_times, loaded.duplicates) == (4, 0)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{nonsense", "not an object of JSON"),
        ("[1]", "expected an object"),
        ('{"pattern": "x"}', "namespace must be"),
        ('{"namespace": 5}', "namespace must be"),
        ('{"namespace": "nowhere"}', "expected tenant/namespace"),
        ('{"namespace": "a/b", "mode": "SOME"}', "Invalid mode"),
        ('{"namespace": "a/b", "mode": 1}', "mode must be"),
        ('{"namespace": "a/b", "mode": ""}', "Invalid mode"),
        ('{"namespace": "a/b", "pattern": 1}', "pattern must be"),
        (
            '{"namespace": "a/b", "patern": "x"}',
            "unknown key 'patern': known are namespace, mode, pattern, properties, count, error, seconds, last_asked",
        ),
        ('{"namespace": "a/b", "properties": {"k": 1}}', "properties must be"),
        ('{"namespace": "a/b", "pattern": "\\ud800"}', "not valid Unicode"),
        ("[" * 100_000, "not an object of JSON"),
        ('"' + "x" * 1024 * 1024 + '"', "longer than"),
    ],
    ids=range(14),
)
def test_a_line_that_cannot_be_understood_is_named(tmp_path: Path, line: str, message: str) -> None:
    source = jsonl(tmp_path / "p.jsonl", {"namespace": "a/b"}, line)
    with pytest.raises(InvalidPatterns, match=message) as caught:
        load_questions(source)
    assert "p.jsonl, line 2" in str(caught.value)


def test_toml(tmp_path: Path) -> None:
    path = file_with(
        tmp_path / "patterns.toml",
        '[[patterns]]\nnamespace = "a/b"\npattern = "a/b/x"\n[[patterns]]\nnamespace = "a/c"\nmode = "ALL"\n'
        'properties = { k = "v" }\n',
    )
    loaded = load_questions(str(path), property_keys=("k",))
    assert set(loaded.questions) == {
        CanonicalQuestion.of("a/b", Mode.PERSISTENT, "a/b/x"),
        CanonicalQuestion.of("a/c", Mode.ALL, None, {"k": "v"}),
    }
    path.write_text('[[patterns]]\nnamespace = "a/b"\n[[patterns]]\nmode = "ALL"\n', encoding="utf-8")
    with pytest.raises(InvalidPatterns, match="number 2"):
        load_questions(str(path))
    path.write_text("nonsense", encoding="utf-8")
    with pytest.raises(InvalidPatterns, match="not TOML"):
        load_questions(str(path))
    path.write_text("patterns = " + "[" * 20_000 + "]" * 20_000, encoding="utf-8")
    with pytest.raises(InvalidPatterns, match="not TOML"):
        load_questions(str(path))
    path.write_text("other = 1", encoding="utf-8")
    with pytest.raises(InvalidPatterns, match="'other'"):
        load_questions(str(path))


@pytest.mark.parametrize("name", ["some patterns.jsonl", "some patterns.toml"])
def test_a_file_by_its_address(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    row = '{"namespace": "a/b"}' if name.endswith(".jsonl") else '[[patterns]]\nnamespace = "a/b"\n'
    path.write_text(row, encoding="utf-8")
    assert load_questions(path.as_uri()).questions == load_questions(str(path)).questions != ()


def test_an_address_of_another_kind_is_refused() -> None:
    with pytest.raises(InvalidPatterns, match="No patterns of the kind 'ftp'"):
        load_questions("ftp://host/patterns.jsonl")
    with pytest.raises(StoreFailed, match="credentials and options are not part") as raised:
        load_questions("s3://key:secret/patterns.jsonl")
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize("ending", ["jsonl", "toml", "parquet"])
def test_a_file_in_a_bucket_has_the_same_questions(
    s3: str, s3_options: dict[str, str], tmp_path: Path, ending: str
) -> None:
    address = f"s3://generations/{tmp_path.name}/patterns.{ending}"
    rows = [{"namespace": "a/b", "pattern": "x.*"}, {"namespace": "a/b", "pattern": "(?=x)"}]
    match ending:
        case "jsonl":
            data = b"".join(json.dumps(row).encode() + b"\n" for row in rows)
        case "toml":
            data = b"".join(
                f"[[patterns]]\nnamespace = 'a/b'\npattern = '{row['pattern']}'\n".encode() for row in rows
            )
        case _:
            sink = pa.BufferOutputStream()
            pq.write_table(pa.Table.from_pylist([{**row, "error": 0} for row in rows]), sink)
            data = sink.getvalue().to_pybytes()
    with pytest.raises(StoreFailed, match="there is no such file"):
        load_questions(address, store_options=s3_options)
    addressed_file(address, s3_options).write(data)
    loaded = load_questions(address, store_options=s3_options)
    assert [question.selector.pattern for question in loaded.questions] == ["x.*"]
    assert [one.pattern for one in loaded.refused] == ["(?=x)"]


def test_a_file_in_a_bucket_that_is_no_list_is_named(tmp_path: Path) -> None:
    for ending, message in (("jsonl", "line 1"), ("toml", "not TOML"), ("parquet", "not Parquet")):
        address = f"memory://{tmp_path.name}/patterns.{ending}"
        addressed_file(address).write(b"}")
        with pytest.raises(InvalidPatterns, match=f"{address}.*{message}"):
            load_questions(address)


def test_what_is_known_before_spark_starts(tmp_path: Path) -> None:
    (tmp_path / "patterns.jsonl").write_text("no question\n")
    addressed_file(f"memory://{tmp_path.name}/patterns.jsonl").write(b"")
    check_patterns(str(tmp_path / "patterns.jsonl"))
    check_patterns(f"memory://{tmp_path.name}/patterns.jsonl")
    for source in ("table:a.b", "s3a://bucket/patterns.parquet"):
        check_patterns(source)
    with pytest.raises(InvalidPatterns, match="No patterns of the kind 'ftp'"):
        check_patterns("ftp://host/patterns.jsonl")
    for address in (str(tmp_path / "none.jsonl"), f"memory://{tmp_path.name}/none.jsonl"):
        with pytest.raises(StoreFailed, match=f"{address}: cannot read it: "):
            check_patterns(address)


def test_files_that_are_not_there(tmp_path: Path) -> None:
    for name in ("none.jsonl", "none.toml"):
        with pytest.raises(StoreFailed, match="No such file"):
            load_questions(str(tmp_path / name))
    with pytest.raises(InvalidPatterns, match="no session"):
        load_questions("table:a.b")


def test_tables(spark: SparkSession, tmp_path: Path) -> None:
    schema = pa.schema(
        [
            ("namespace", pa.string()),
            ("mode", pa.string()),
            ("pattern", pa.string()),
            ("properties", pa.map_(pa.string(), pa.string())),
            ("seconds", pa.float64()),
        ]
    )
    rows = [
        {"namespace": "a/b", "mode": "ALL", "pattern": "x", "properties": [("k", "v")], "seconds": 0.5},
        {"namespace": "a/b", "mode": None, "pattern": None, "properties": None, "seconds": None},
    ]
    path = tmp_path / "patterns.parquet"
    pq.write_table(pa.Table.from_pylist(rows, schema=schema), path)
    wanted = {
        CanonicalQuestion.of("a/b", Mode.ALL, "x", {"k": "v"}),
        CanonicalQuestion.of("a/b", Mode.PERSISTENT, None),
    }
    assert set(load_questions(str(path), spark=spark, property_keys=("k",)).questions) == wanted
    spark.read.parquet(str(path)).createOrReplaceTempView("known_patterns")
    assert set(load_questions("table:known_patterns", spark=spark, property_keys=("k",)).questions) == wanted
    spark.catalog.dropTempView("known_patterns")  # other tests share the session
    with pytest.raises(InvalidPatterns, match="Cannot read the patterns table:missing"):
        load_questions("table:missing", spark=spark)


@pytest.mark.parametrize("column", ["patern", "Pattern", "owner", "topic"])
def test_a_column_that_no_question_has_is_an_error(spark: SparkSession, tmp_path: Path, column: str) -> None:
    table = pa.table({"namespace": ["a/b"], column: ["a/b/x"]})
    pq.write_table(table, tmp_path / "patterns.parquet")
    memory = f"memory://{uuid.uuid4().hex}/patterns.parquet"
    addressed_file(memory).write((tmp_path / "patterns.parquet").read_bytes())
    for source in (str(tmp_path / "patterns.parquet"), spark.createDataFrame(table), memory):
        with pytest.raises(InvalidPatterns, match=rf"unknown column '{column}': known are namespace, mode,"):
            load_questions(source, spark=spark)


def test_a_table_of_questions_that_a_build_exports_is_read_back(spark: SparkSession) -> None:
    row = {"namespace": "a/b", "mode": "ALL", "pattern": "x", "count": 3, "hash": "00", "number": 1}
    table = pa.Table.from_pylist([row], schema=TOTALS_SCHEMA)
    loaded = load_questions(spark.createDataFrame(table), spark=spark)
    assert loaded.questions == (CanonicalQuestion.of("a/b", Mode.ALL, "x"),)


@pytest.mark.parametrize(
    ("kind", "properties", "message"),
    [
        (pa.list_(pa.string()), ["ab"], "properties must be"),
        (pa.list_(pa.string()), ["abc"], "properties must be"),
        (pa.string(), "[" * 100_000, "not an object of JSON"),
        (pa.string(), "nonsense", "not an object of JSON"),
        (pa.binary(), b"{}", "properties must be"),
    ],
    ids=range(5),
)
def test_properties_of_a_table_that_are_none_are_refused_by_the_row(
    spark: SparkSession, tmp_path: Path, kind: pa.DataType, properties: object, message: str
) -> None:
    path = tmp_path / "patterns.parquet"
    columns = {"namespace": pa.array(["a/b", "a/b"]), "properties": pa.array([None, properties], kind)}
    pq.write_table(pa.table(columns), path)
    with pytest.raises(InvalidPatterns, match=message) as caught:
        load_questions(str(path), spark=spark)
    assert "patterns.parquet, row 2" in str(caught.value)


def test_a_text_of_a_table_that_is_no_utf8_is_refused_by_the_row(spark: SparkSession, tmp_path: Path) -> None:
    spoilt = pa.array([b"x", b"\xff\xfe"])
    texts = pa.StringArray.from_buffers(2, spoilt.buffers()[1], spoilt.buffers()[2])
    path = tmp_path / "patterns.parquet"
    pq.write_table(pa.table({"namespace": pa.array(["a/b", "a/b"]), "pattern": texts}), path)
    with pytest.raises(InvalidPatterns, match="row 2: pattern is no text in UTF-8"):
        load_questions(str(path), spark=spark)


def test_properties_without_a_word_about_selecting_ones_are_an_error(tmp_path: Path) -> None:
    plain = {"namespace": "a/b", "pattern": "x"}
    selecting = [
        {**plain, "properties": {"env": "prod", "who": "me"}},
        {**plain, "properties": {"env": "test"}},
    ]
    source = jsonl(tmp_path / "p.jsonl", plain, *selecting)
    with pytest.raises(InvalidPatterns, match=r"p\.jsonl, line 2: 2 questions with properties") as caught:
        load_questions(source, property_keys=None)
    assert "properties (env,who)" in str(caught.value)
    assert "pass --property-key env,who, only those that select" in str(caught.value)
    assert len(load_questions(source, property_keys=()).questions) == 1
    loaded = load_questions(source, property_keys=("env",))
    assert (len(loaded.questions), loaded.property_keys) == (3, ("env",))
    loaded = load_questions(jsonl(tmp_path / "q.jsonl", plain), property_keys=None)
    assert (len(loaded.questions), loaded.property_keys) == (1, ())


def test_a_second_source_is_always_there(tmp_path: Path) -> None:
    source = jsonl(tmp_path / "p.jsonl", {"namespace": "a/b", "pattern": "x"})
    always = file_with(tmp_path / "always.toml", '[[patterns]]\nnamespace = "a/b"\npattern = "y"\n')
    loaded = load_questions(source, always=str(always))
    assert [question.selector.pattern for question in loaded.questions] == ["x", "y"]
    with pytest.raises(StoreFailed, match=r"missing\.jsonl: cannot read it: No such file"):
        load_questions(source, always=str(tmp_path / "missing.jsonl"))


def test_a_property_that_selects_nothing_is_counted_and_refused_if_asked(tmp_path: Path) -> None:
    rows = [
        {"namespace": "a/b", "pattern": "a/b/x", "properties": {"zone": "eu", "region": "eu"}},
        {"namespace": "a/b", "pattern": "a/b/x", "properties": {"zone": "us"}},
        {"namespace": "a/b", "pattern": "a/b/y"},
    ]
    source = jsonl(tmp_path / "p.jsonl", *rows)
    loaded = load_questions(source, property_keys=("region",))
    assert loaded.ignored == {"zone": 2}
    assert {question.selector.properties for question in loaded.questions} == {(), (("region", "eu"),)}
    said = (
        r"p.jsonl, line 1: 2 questions with properties that select nothing \(zone\): those that do are region"
    )
    with pytest.raises(InvalidPatterns, match=said):
        load_questions(source, property_keys=("region",), strict=True)
    with pytest.raises(InvalidPatterns, match=said):
        check_rows([source], property_keys=("region",), strict=True)
    check_rows([source, "table:none"], property_keys=("region",))


def test_lines_are_checked_before_spark_starts(tmp_path: Path) -> None:
    bad = jsonl(tmp_path / "bad.jsonl", {"namespace": "a/b", "pattern": "(?=refused"}, {"pattern": 1})
    addressed_file(f"memory://{tmp_path.name}/p.jsonl").write(Path(bad).read_bytes())
    for source in (bad, f"memory://{tmp_path.name}/p.jsonl"):
        with pytest.raises(InvalidPatterns, match="line 2: namespace must be"):
            check_rows([source], property_keys=())


def test_rows_of_a_pipe_are_left_for_the_build(tmp_path: Path) -> None:
    pipe, end = os.pipe()
    os.write(end, Path(jsonl(tmp_path / "p.jsonl", {"namespace": "a/b", "pattern": "x"})).read_bytes())
    os.close(end)
    check_rows([f"/dev/fd/{pipe}"], property_keys=())
    assert len(load_questions(f"/dev/fd/{pipe}").questions) == 1
    os.close(pipe)


@pytest.mark.parametrize(
    ("requested", "reason"),
    [
        (pa.array([2**60], pa.timestamp("us", "UTC")), "row 1: last_asked: "),
        (pa.array([2**50], pa.timestamp("us", "Nowhere/Town")), "row 1: last_asked: .*Nowhere"),
        (None, "not Parquet"),
    ],
)
def test_a_table_in_a_bucket_that_cannot_be_read(
    tmp_path: Path, requested: pa.Array | None, reason: str
) -> None:
    sink = pa.BufferOutputStream()
    last = pa.array(["x" * 200]) if requested is None else requested
    pq.write_table(pa.table({"namespace": ["a/b"], "last_asked": last}), sink)
    data = bytearray(sink.getvalue().to_pybytes())
    if requested is None:
        data[4:60] = bytes(byte ^ 0xFF for byte in data[4:60])
    address = f"memory://{tmp_path.name}/patterns.parquet"
    addressed_file(address).write(bytes(data))
    with pytest.raises(InvalidPatterns, match=f"{address}.*{reason}"):
        load_questions(address)


def test_tasks_find_what_the_driver_finds(spark: SparkSession) -> None:
    patterns = [f"a/b/x{number}.*" for number in range(50)] + ["(?=x)", "é*", "kafka://x", "a" * 40]
    here = refused_patterns(patterns, 30)
    assert set(here) == {"(?=x)", "kafka://x", "a" * 40}
    assert refused_patterns(patterns, 30, spark, many=1) == here
    assert refused_patterns(patterns, None, spark, many=1).keys() == {"(?=x)", "kafka://x"}
    assert refused_patterns([], 30, spark, many=1) == {}

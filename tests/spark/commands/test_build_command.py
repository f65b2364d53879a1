"""``broker-core spark build``: its output, its exit codes, its settings. In this process."""

from __future__ import annotations

import json
import signal
import threading
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from broker_core.catalog import SqliteCatalog
from broker_core.cli.command_tree import run
from broker_core.names import TopicName
from broker_core_spark.batch import job
from broker_core_spark.batch.reports import build_metrics, html_report
from broker_core_spark.commands import build_command
from broker_core_spark.errors import StoreFailed
from broker_core_spark.store import open_store
from broker_core_spark.store.file_at_address import addressed_file
from broker_core_spark.store.published_pointers import current_pointer
from broker_core_spark.store.stored_manifest import read_manifest
from tests.support.files import file_with
from tests.support.narrowed import present
from tests.support.ports import free_port
from tests.support.spark_catalogues import fill, write_patterns

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS: list[dict[str, Any]] = [
    {"namespace": "a/b", "pattern": "a/b/orders-.*", "properties": {"region": "eu", "who": "me"}},
    {"namespace": "a/b", "pattern": "(?=\x07ahead)"},
    {"namespace": "no/where", "pattern": ".*"},
]


@pytest.fixture
def arguments(spark: SparkSession, tmp_path: Path) -> list[str]:
    """The arguments for a catalogue and patterns. The session of the tests is used."""
    assert spark.version
    names = [{"name": f"orders-{number}", "properties": {"region": "eu"}} for number in range(3)]
    fill(tmp_path / "catalogue.sqlite", {"a/b": [*names, "orders-x"]})
    patterns = write_patterns(tmp_path / "patterns.jsonl", ROWS)
    where = ["--catalogue", str(tmp_path / "catalogue.sqlite"), "--patterns", str(patterns)]
    return ["spark", "build", *where, "--out", str(tmp_path / "store")]


def test_the_last_line_is_the_result(
    arguments: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report, table = tmp_path / "report.html", tmp_path / "totals.parquet"
    more = ["--property-keys", "region, zone", "--partitions", "3", "--report", str(report)]
    assert run([*arguments, *more, "--export-parquet", str(table), "--incremental"]) == 0
    out, err = capsys.readouterr()
    record = json.loads(out.splitlines()[-1])
    published = present(current_pointer(open_store(str(tmp_path / "store"))))
    assert record["generation"] == published.generation
    assert (record["topics"], record["questions"], record["matches"], record["refused"]) == (4, 1, 3, 1)
    assert record["unknown_namespaces"] == ["no/where"]
    assert (record["property_keys"], record["kept_questions"]) == (["region", "zone"], 0)
    assert "RE2 refuses it" in err
    assert "\x07" not in err
    assert "no/where" in err
    assert report.is_file()
    (row,) = pq.read_table(table).to_pylist()
    assert (row["pattern"], row["count"], row["generation"]) == ("a/b/orders-.*", 3, published.generation)


def test_progress_and_metrics_are_written_where_they_are_asked_for(
    arguments: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    metrics = tmp_path / "build.prom"
    more = [*arguments, "--property-keys", "region", "--metrics", str(metrics), "--progress"]
    assert run([*more, "lines"]) == 0
    said = capsys.readouterr().err.splitlines()
    steps = ["patterns", "catalogue", "segments", "publish"]
    assert [line for line in said if line.rpartition(" ")[2] in steps] == [
        f"broker-core: spark build: {step}" for step in steps
    ]
    assert "broker_core_spark_build_succeeded 1.0" in metrics.read_text()
    assert run([*more, "terminal", "--min-questions", "2"]) == 3
    terminal = capsys.readouterr().err
    assert terminal.count("\r\x1b[K") == 3  # two steps, and the line is empty when the refusal is said
    assert "not published" in terminal.rpartition("\r\x1b[K")[2]
    assert "broker_core_spark_build_succeeded 0.0" in metrics.read_text()
    assert run(more[:-3]) == 0
    assert "\r" not in capsys.readouterr().err  # no terminal: nothing is shown
    nobody = f"http://127.0.0.1:{free_port()}"
    assert run([*more, "none", "--metrics", nobody]) == 1
    out, err = capsys.readouterr()
    assert json.loads(out)["number"] == 3  # the result is told all the same, and what people should know
    assert "refused: " in err
    assert err.splitlines()[-1].startswith(f"broker-core: Cannot push the metrics to {nobody}: ")
    assert err.endswith("; the generation is published\n")


@pytest.mark.parametrize(
    ("module", "name"),
    [(html_report, "html_page"), (job, "write_build_record"), (job, "leave_learned")],
    ids=["report", "record", "learned"],
)
def test_the_exit_code_and_the_metrics_of_a_build_whose_output_fails_agree(
    arguments: list[str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    module: ModuleType,
    name: str,
) -> None:
    def full(*_: object) -> None:
        raise StoreFailed("x: no space")

    metrics = tmp_path / "build.prom"
    more = [*arguments, "--property-keys", "region", "--metrics", str(metrics)]
    with monkeypatch.context() as patch:
        patch.setattr(module, name, full)
        assert run([*more, "--report", str(tmp_path / "report.html")]) == 1
    out, err = capsys.readouterr()
    assert err.endswith("broker-core: x: no space; the generation is published\n")
    record = json.loads(out)
    published = present(current_pointer(open_store(str(tmp_path / "store"))))
    assert (record["generation"], record["number"]) == (published.generation, 1)
    written = metrics.read_text()
    for said in ("succeeded 0.0", "generation_number 1.0", "questions 1.0", "published_timestamp_seconds 1"):
        assert f"broker_core_spark_build_{said}" in written, said
    assert run(more) == 0
    assert "broker_core_spark_build_succeeded 1.0" in metrics.read_text()


def test_a_build_that_ends_before_spark_starts_writes_that_it_failed(
    arguments: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    metrics = file_with(tmp_path / "build.prom", "broker_core_spark_build_succeeded 1.0\n")
    more = [*arguments, "--patterns", str(tmp_path / "none.jsonl"), "--metrics", str(metrics)]
    assert run(more) == 1
    assert "broker_core_spark_build_succeeded 0.0" in metrics.read_text()
    capsys.readouterr()

    # The place of the metrics may give no answer: it has a time of its own.
    answered = threading.Event()
    monkeypatch.setattr(build_metrics, "write_metrics", lambda *_, **__: answered.wait())
    monkeypatch.setattr(build_command, "_METRICS_SECONDS", 0.01)
    assert run(more) == 1
    answered.set()
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 2
    assert said[0].startswith(f"broker-core: spark build: {metrics}: no answer for 0.01 seconds")
    assert "none.jsonl" in said[1]


def test_the_largest_segment_and_the_most_tasks(
    arguments: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = file_with(
        tmp_path / "names.txt",
        "".join(f"some-rather-long-name-of-a-topic-{number:07}\n" for number in range(40_000)),
    )
    patterns = write_patterns(tmp_path / "some.jsonl", [{"namespace": "a/b", "pattern": ".*7"}])
    arguments[3] = str(names)
    more = [*arguments, "--namespace", "a/b", "--patterns", str(patterns)]
    segments = []
    for largest, tasks in ((1024 * 1024, 2), (16 * 1024 * 1024, 1)):
        limits = ["--largest-segment", str(largest), "--partitions", str(tasks)]
        assert run([*more, "--property-keys", "", *limits]) == 0
        record = json.loads(capsys.readouterr().out.splitlines()[-1])
        assert record["partitions"] == tasks
        manifest = read_manifest(open_store(str(tmp_path / "store")), record["generation"])
        segments.append(len(manifest.segments))
        fields = 40 + len("persistent://a/b/") + 2  # of a name, besides its offset of 4 bytes
        assert all(segment.names * fields <= largest for segment in manifest.segments)
    assert segments[0] > segments[1]


def test_gates_without_a_generation_to_compare_with_say_so(
    arguments: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    more = [*arguments, "--property-keys", "region"]
    assert run(more) == 0
    out, err = capsys.readouterr()
    assert json.loads(out.splitlines()[-1])["not_compared"] is None
    assert "compare" not in err
    published = present(current_pointer(open_store(str(tmp_path / "store"))))
    (tmp_path / "store" / "manifests" / f"{published.generation}.json").write_text("torn")
    assert run(more) == 0
    out, err = capsys.readouterr()
    reason = json.loads(out.splitlines()[-1])["not_compared"]
    assert reason.startswith(f"generation {published.generation[:12]} cannot be read: ")
    assert f"broker-core: spark build: the gates could not compare with what is published: {reason}\n" in err


def test_property_keys_of_the_settings(
    arguments: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = file_with(
        tmp_path / "broker-core.toml", '[catalog]\nproperty_keys = ["who"]\n[patterns]\nmax_length = 5\n'
    )
    assert run([*arguments, "--config", str(settings), "--min-questions", "0"]) == 0
    record = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (record["questions"], record["refused"]) == (0, 2)  # longer than the five characters
    assert record["property_keys"] == ["who"]
    assert run(arguments) == 1
    out, err = capsys.readouterr()
    assert not out
    assert "patterns.jsonl, line 1: 1 question with properties (region,who)" in err
    assert "pass --property-key region,who, only those" in err
    assert run([*arguments, "--property-key", ""]) == 0
    record = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (record["questions"], record["matches"], record["property_keys"]) == (1, 4, [])
    assert run([*arguments, "--property-key", "region", "--property-key", "zone"]) == 0
    record = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (record["matches"], record["property_keys"]) == (3, ["region", "zone"])


@pytest.mark.parametrize("own", ["", '[catalog]\nproperty_keys = ["who"]\n'], ids=["alone", "beside"])
def test_property_keys_of_a_plugin_select_as_in_the_broker(
    arguments: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str], own: str
) -> None:
    settings = tmp_path / "broker-core.toml"
    plugins = '[plugins]\nenabled = ["postgres"]\n[plugins.postgres]\ndsn = "postgresql://h/d"\n'
    settings.write_text(f'{own}{plugins}property_keys = ["region"]\n', encoding="utf-8")
    assert run([*arguments, "--config", str(settings)]) == 0
    out, err = capsys.readouterr()
    record = json.loads(out.splitlines()[-1])
    assert (record["questions"], record["matches"]) == (1, 0 if own else 3)
    assert ("differ" in err) is bool(own)


def test_a_generation_that_lost_too_much_has_an_exit_code_of_its_own(
    arguments: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [{"namespace": "a/b", "pattern": f"a/b/orders-{number}"} for number in range(4)]
    always = write_patterns(tmp_path / "always.jsonl", [*rows, {"namespace": "a/b", "pattern": ".*"}])
    settings = file_with(
        tmp_path / "broker-core.toml",
        f'[plugins.spark]\nstore = "elsewhere"\nalways = "{always}"\nmax_question_loss = 0.7\n',
    )
    write_patterns(tmp_path / "patterns.jsonl", [])
    arguments += ["--config", str(settings)]
    assert run(arguments) == 0
    first = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert first["questions"] == 5
    write_patterns(always, rows[:1])
    assert run(arguments) == 3
    out, err = capsys.readouterr()
    assert not out
    assert err.count("\n") == 1
    assert (
        f"1 question, and generation {first['generation'][:12]} has 5: a loss of 80.0%, at most 70.0%" in err
    )
    store = tmp_path / "store"
    published = present(current_pointer(open_store(str(store))))
    assert (published.generation, published.number) == (first["generation"], 1)
    assert not list((store / "temporary").iterdir())
    assert not list((store / "marks").iterdir())
    # The option is stronger than the setting.
    more = ["--max-question-loss", "0.9", "--max-coverage-loss", "1"]
    assert run([*arguments, *more, "--min-questions", "2"]) == 3
    assert "1 question, and generation" in capsys.readouterr().err
    assert run([*arguments, *more]) == 0
    write_patterns(tmp_path / "none.jsonl", [])
    assert run([*arguments, "--always", str(tmp_path / "none.jsonl")]) == 3
    assert "0 questions, and generation" in capsys.readouterr().err
    assert run([*arguments, "--always", str(tmp_path / "none.jsonl"), "--allow-shrink"]) == 0


def test_a_closed_gate_says_what_was_refused_and_left_out(
    arguments: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    more = [*arguments, "--property-keys", "region"]
    assert run([*more, "--min-questions", "2"]) == 3
    refused = capsys.readouterr().err
    *notes, gate = refused.splitlines()
    assert gate == (
        "broker-core: not published: 1 question: at least 2 (min_questions). --allow-shrink publishes it"
    )
    assert [note.removeprefix("broker-core: spark build: ").partition(":")[0] for note in notes] == [
        "ignored",
        "refused",
        "left out",
    ]
    assert run(more) == 0
    assert capsys.readouterr().err.splitlines() == notes  # the same lines as of a build that publishes
    with SqliteCatalog(tmp_path / "catalogue.sqlite", create=False) as catalog:
        for name in ("orders-0", "orders-1", "orders-2"):
            catalog.delete(TopicName.parse(f"persistent://a/b/{name}"))
    assert run(more) == 3  # of topics, after the match
    *again, empty, gate = capsys.readouterr().err.splitlines()
    assert again == notes
    assert "empty: 1 question by the property 'region' without a topic" in empty
    assert "1 topic in the namespaces" in gate
    assert gate.endswith("The published generation stays; --allow-shrink publishes it")


def test_rows_that_a_condition_leaves_out_are_counted(
    arguments: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names, more = tmp_path / "names.parquet", tmp_path / "more.parquet"
    pq.write_table(pa.table({"name": ["orders-1", "persistent://a/b/bad/name", "orders-2"]}), names)
    pq.write_table(pa.table({"name": ["orders-3"]}), more)
    arguments[3] = str(names)
    arguments += ["--catalogue", str(more), "--namespace", "a/b", "--property-key", ""]
    assert run(arguments) == 1
    assert "bad/name" in capsys.readouterr().err
    assert run([*arguments, "--where", "name NOT LIKE '%/%'"]) == 0
    out, err = capsys.readouterr()
    record = json.loads(out.splitlines()[-1])
    assert (record["rows_left_out"], record["topics"], record["matches"]) == (1, 3, 3)
    assert "left out: 1 row of the catalogue (--where)" in err


@pytest.mark.parametrize(
    ("more", "code", "message"),
    [
        (["--partitions", "0"], 2, "partitions"),
        (["--conf", "nonsense"], 2, "expected KEY=VALUE"),
        (["--max-topic-loss", "50"], 2, "max-topic-loss"),
        (["--keep-learned", "soon"], 2, "is not a duration"),
        (["--catalogue", "missing.sqlite"], 1, "There is no catalogue"),
        (["--patterns", "missing.jsonl"], 1, "No such file"),
        (["--out", "ftp://host/x"], 1, "no place for generations"),
        (["--unknown"], 2, "unknown"),
    ],
    ids=["partitions", "conf", "share", "duration", "catalogue", "patterns", "out", "option"],
)
def test_what_is_wrong_is_one_line_and_an_exit_code(
    arguments: list[str], capsys: pytest.CaptureFixture[str], more: list[str], code: int, message: str
) -> None:
    assert run([*arguments, "--property-key", "region", *more]) == code
    out, err = capsys.readouterr()
    assert message in err
    assert not out
    assert "Traceback" not in err


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--catalogue", "names.txt"], "names.txt is a file of names: say of which namespace by --namespace"),
        (["--catalogue", "names.txt", "--namespace", "a"], "'a'"),
        (["--catalogue", "missing.sqlite"], "There is no catalogue missing.sqlite"),
        (["--patterns", "missing.jsonl"], "missing.jsonl: cannot read it: No such file or directory"),
        (["--always", "missing.toml"], "missing.toml: cannot read it: No such file or directory"),
    ],
    ids=["names", "namespace", "catalogue", "patterns", "always"],
)
def test_files_are_looked_at_before_spark_starts(
    arguments: list[str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    more: list[str],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("broker_core_spark.batch.spark.spark_session.spark_session", None)  # is not called
    (tmp_path / "names.txt").write_text("orders\n", encoding="utf-8")
    assert run([*arguments, *more]) == 1
    out, err = capsys.readouterr()
    assert message in err
    assert (out, err.count("\n")) == ("", 1)
    assert not (tmp_path / "store").exists()


def test_a_line_of_the_patterns_that_is_none(
    arguments: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "patterns.jsonl").write_text('{"namespace": "a/b"}\n{"mode": "ALL"}\n', encoding="utf-8")
    assert run(arguments) == 1
    assert "line 2" in capsys.readouterr().err
    assert current_pointer(open_store(str(tmp_path / "store"))) is None


def test_everything_of_a_build_may_be_in_a_bucket(
    arguments: list[str],
    s3_options: dict[str, str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """By options, and by the settings that the brokers have: every command of the plugin."""
    place = f"s3://generations/{tmp_path.name}"
    # The keys are no secrets here: the Spark of the tests runs already, without them in its environment.
    options = [f"--store-option={name}={value}" for name, value in s3_options.items()]
    addressed_file(f"{place}/patterns.jsonl", s3_options).write((tmp_path / "patterns.jsonl").read_bytes())
    named = {"--patterns": "patterns.jsonl", "--report": "report.html", "--metrics": "build.prom"}
    build = [*arguments[:4], "--out", f"{place}/store", "--property-keys", "region"]
    for option, name in named.items():
        build += [option, f"{place}/{name}"]
    build += [
        "--export-parquet",
        str(tmp_path / "totals.parquet"),
    ]  # Spark's: into a bucket by its connector alone
    assert run([*build, *options]) == 0
    generation = json.loads(capsys.readouterr().out.splitlines()[-1])["generation"]
    assert b"orders-" in addressed_file(f"{place}/report.html", s3_options).read(1 << 20)
    assert b"build_succeeded 1.0" in addressed_file(f"{place}/build.prom", s3_options).read(1 << 20)
    assert pq.read_table(tmp_path / "totals.parquet").num_rows == 1
    stored = open_store(f"{place}/store", s3_options)
    assert list(stored.list("temporary")) == []

    settings = file_with(
        tmp_path / "broker-core.toml",
        f'[plugins.spark]\nstore = "{place}/store"\n[plugins.spark.store_options]\nallow_http = true\n'
        + "".join(f'{name} = "{value}"\n' for name, value in s3_options.items() if name != "allow_http"),
    )
    configured = ["--config", str(settings)]
    assert run([*build, *configured, "--incremental"]) == 0
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["segments_kept"] > 0
    for command, said in (
        (["status", "--json"], generation),
        (["use", generation[:8]], "is served from now on"),
        (["gc", "--keep", "1", "--grace", "0s"], "generations kept: " + generation[:12]),
    ):
        for way in (configured, ["--store", f"{place}/store", *options]):
            assert run(["spark", *command, *way]) == 0
            assert said in capsys.readouterr().out


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("--report", "none/report.html", "none/report.html: cannot write it: No such file or directory"),
        (
            "--export-parquet",
            "nonsense://host/t.parquet",
            "Cannot write the table nonsense://host/t.parquet: ",
        ),
        ("--report", "ftp://host/report.html", "ftp:// is no place for a file"),
        ("--report", "s3://no-such-bucket/r.html", "s3://no-such-bucket/r.html: cannot write it: "),
        ("--patterns", "s3://generations/none.jsonl", "cannot read it: there is no such file"),
        ("--store-option", "nonsense", "expected KEY=VALUE"),
    ],
)
def test_a_place_that_is_none_is_said_before_the_build(
    arguments: list[str],
    s3_options: dict[str, str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    option: str,
    value: str,
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, text in s3_options.items():
        monkeypatch.setenv(f"AWS_{name.upper()}", text)
    assert run([*arguments, "--property-keys=k", option, value]) > 0
    out, err = capsys.readouterr()
    assert message in err
    assert err.count("\n") == 1
    assert not out
    assert not (tmp_path / "store" / "pointers").exists()


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_signal_ends_a_build_and_leaves_nothing(
    arguments: list[str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    number: signal.Signals,
    code: int,
) -> None:
    seen: list[bool] = []

    def ended(*_: object, **__: object) -> None:
        store = open_store(str(tmp_path / "store"))
        seen.append(any(store.list("temporary")) and any(store.list("marks")))
        signal.raise_signal(number)

    monkeypatch.setattr(job, "write_manifest", ended)
    assert run([*arguments, "--property-keys", "region"]) == code
    assert seen == [True]
    out, err = capsys.readouterr()
    assert (out, err) == ("", f"broker-core: spark build: ended by {number.name}: nothing was published\n")
    store = open_store(str(tmp_path / "store"))
    assert [*store.list("temporary"), *store.list("marks"), *store.list("pointers")] == []


def test_a_signal_after_the_publication_says_so(
    arguments: list[str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(job, "write_table", lambda *_, **__: signal.raise_signal(signal.SIGTERM))
    more = ["--property-keys", "region", "--export-parquet", str(tmp_path / "totals.parquet")]
    assert run([*arguments, *more]) == 143
    published = present(current_pointer(open_store(str(tmp_path / "store"))))
    assert f"ended by SIGTERM: {published.generation[:12]} is published\n" in capsys.readouterr().err

"""The session of a build: the active one, or a local one with its own settings."""

from __future__ import annotations

import inspect
import os
import shlex
import signal
import subprocess
import sys
from asyncio import CancelledError
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.core import context

from broker_core_spark.batch.spark.java_gateway import JavaOutput
from broker_core_spark.batch.spark.java_home import JavaMissing
from broker_core_spark.batch.spark.spark_session import LOCAL_SETTINGS, SessionFailed, spark_session
from tests.support.distributions import DISTRIBUTIONS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_an_interruption_that_pyspark_replaced_is_raised(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Session:
        version = spark.version

        def stop(self) -> None:
            raise ConnectionError("the JVM is gone")

    monkeypatch.setattr(type(spark), "getActiveSession", lambda: None)
    monkeypatch.setattr("broker_core_spark.batch.spark.spark_session._made", lambda *_: Session())
    with pytest.raises(KeyboardInterrupt, match="first"), spark_session():
        try:
            try:
                raise KeyboardInterrupt("first")
            finally:
                raise ConnectionError("the JVM is gone")  # as the end of a block of PySpark's does
        except ConnectionError as error:
            raise ValueError("Spark failed") from error
    with pytest.raises(ValueError, match="Spark failed"), spark_session():
        raise ValueError("Spark failed") from CancelledError()


def test_pyspark_does_not_handle_interrupts(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its handler would call the JVM, also in the midst of another call, as while a session is made."""
    assert inspect.getsource(context.SparkContext).count("signal.signal(signal.SIGINT, signal_handler)") == 1
    before = signal.getsignal(signal.SIGINT)
    seen = []

    class Session:
        version = spark.version

        def stop(self) -> None: ...

    def made(*_: object) -> Session:
        context.signal.signal(context.signal.SIGINT, signal.SIG_IGN)  # type: ignore[attr-defined]
        seen.append(signal.getsignal(signal.SIGINT))
        return Session()

    monkeypatch.setattr(type(spark), "getActiveSession", lambda: None)
    monkeypatch.setattr("broker_core_spark.batch.spark.spark_session._made", made)
    with spark_session():
        assert context.signal is signal  # type: ignore[attr-defined]
    assert seen == [before]


def test_what_java_says_while_it_stops_is_not_shown(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    class Session:
        version = spark.version
        output: JavaOutput

        def stop(self) -> None:
            with os.fdopen(os.dup(self.output.opened()), "w") as java:
                java.write("ERROR ContextCleaner: Error cleaning broadcast 0\n")
            self.output.pass_on()

    def made(_master: object, _conf: object, _name: object, output: JavaOutput) -> Session:
        session.output = output
        return session

    session = Session()
    monkeypatch.setattr(type(spark), "getActiveSession", lambda: None)
    monkeypatch.setattr("broker_core_spark.batch.spark.spark_session._made", made)
    with spark_session():
        pass
    session.output.reason()  # has read all
    assert capfd.readouterr().err == ""


def test_a_session_that_is_there_is_used_as_it_is(spark: SparkSession) -> None:
    before = spark.conf.get("spark.sql.shuffle.partitions")
    with spark_session(master="local[7]", conf={"spark.sql.shuffle.partitions": "99"}) as session:
        assert session is spark
    assert spark.conf.get("spark.sql.shuffle.partitions") == before
    assert spark.range(3).count() == 3  # it is still running


def test_settings_of_a_local_one(spark: SparkSession) -> None:
    # The fixture's session is made by the same function, with three settings more.
    assert spark.conf.get("spark.driver.memory") == "512m"
    for key in ("spark.ui.enabled", "spark.driver.bindAddress", "spark.sql.session.timeZone"):
        assert spark.conf.get(key) == LOCAL_SETTINGS[key]


def test_an_error_of_java_at_the_start_is_one_line(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    def start(*_: object) -> None:
        said = (
            "An error occurred while calling None.org.X.\n: java.lang.IllegalStateException: stopped\n\tat X"
        )
        raise Py4JError(said)

    monkeypatch.setattr(type(spark), "getActiveSession", lambda: None)
    monkeypatch.setattr("os.environ", dict(os.environ))
    monkeypatch.setattr("broker_core_spark.batch.spark.spark_session.check_server", lambda _: None)
    monkeypatch.setattr("broker_core_spark.batch.spark.spark_session.start_java", start)
    with pytest.raises(SessionFailed) as raised, spark_session(master="spark://host:1"):
        pass
    assert (
        str(raised.value)
        == "Spark does not start at spark://host:1: java.lang.IllegalStateException: stopped"
    )


def test_without_pyspark_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """In the versions of the extra ``batch``, but not by the name of the distribution, which is on no index."""
    monkeypatch.setitem(sys.modules, "pyspark.sql", None)
    with pytest.raises(SessionFailed, match="needs PySpark") as raised, spark_session():
        pass
    spark = next(each for each in DISTRIBUTIONS if each.package == "broker_core_spark")
    batch = spark.project["optional-dependencies"]["batch"]
    named = [line for line in batch if line.startswith(("pandas", "pyspark"))]
    assert sorted(shlex.split(str(raised.value).partition("pip install ")[2])) == named


_OTHERS = """
import sys
from broker_core_spark.batch.spark.spark_session import SessionFailed, spark_session
try:
    with spark_session(master=sys.argv[1]):
        print("a session")
except Exception as error:
    print(type(error).__name__, error)
"""


def test_without_a_java_that_fits_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    said = subprocess.run(
        [sys.executable, "-c", _OTHERS, "local[1]"], capture_output=True, text=True, check=True
    ).stdout
    assert said.startswith("JavaMissing JAVA_HOME is /nowhere, which is no Java")
    assert issubclass(JavaMissing, Exception)


def test_without_pyspark_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyspark.sql", None)
    with pytest.raises(SessionFailed, match=r"pip install 'pyspark"), spark_session():
        pass


def test_without_the_packages_of_spark_connect_it_is_said(tmp_path: Path) -> None:
    script = tmp_path / "job.py"  # PySpark takes a `python -c` without these packages for a test of its own
    script.write_text("import sys\nsys.modules['grpc_status'] = None\n" + _OTHERS, encoding="utf-8")
    said = subprocess.run(
        [sys.executable, script, "sc://127.0.0.1:1"], capture_output=True, text=True, check=True
    ).stdout
    assert said.startswith("SessionFailed Spark does not start at sc://127.0.0.1:1: ")
    assert said.strip().endswith("pip install 'pyspark[connect]'")


def test_serving_imports_no_pyspark() -> None:
    script = (
        "import sys\nimport broker_core_spark.plugin, broker_core_spark.serving.opened.generation\n"
        "import broker_core_spark.commands, broker_core_spark.store.publishing\n"
        "print([name for name in ('pyspark', 'py4j', 'asyncpg') if name in sys.modules])\n"
    )
    said = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert said.strip() == "[]"

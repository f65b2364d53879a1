"""The session of a build: the active one, or a local one with its own settings."""

from __future__ import annotations

import inspect
import os
import pwd
import shlex
import subprocess
import sys
import tempfile
from asyncio import CancelledError
from io import BytesIO
from pathlib import Path
from types import SimpleNamespace
from typing import IO, TYPE_CHECKING

import pytest
from py4j.protocol import Py4JError
from pyspark.core import context

from broker_core_spark.batch.spark import spark_session as spark_session_module
from broker_core_spark.batch.spark.java_home import JavaMissing
from broker_core_spark.batch.spark.spark_session import (
    LOCAL_SETTINGS,
    SessionFailed,
    check_spark_version,
    spark_session,
)
from tests.support.distributions import DISTRIBUTIONS, ROOT
from tests.support.files import file_with
from tests.support.quick_java import quick_java_options

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


_START = """
import os, signal, sys, tempfile
from broker_core_spark.batch.spark.spark_session import spark_session
os.environ["SPARK_LOCAL_DIRS"] = tempfile.gettempdir()
before = signal.getsignal(signal.SIGINT)
with spark_session(master="local[1]", conf={"spark.driver.extraJavaOptions": sys.argv[1]}) as session:
    print(signal.getsignal(signal.SIGINT) is before, session.conf.get("spark.ui.showConsoleProgress"))
    print(session.getActiveSession() is not None)
    java = session.sparkContext._jvm.java.lang.System
    print(java.getProperty("java.io.tmpdir"))
    java.err.println("ERROR a line of the log")
    if sys.argv[2] == "fails":
        raise ValueError("it failed")
"""


@pytest.mark.parametrize("how", ["ends", "fails"])
def test_what_java_says_is_shown_after_a_failure_alone(tmp_path: Path, how: str) -> None:
    """PySpark handles no SIGINT: its handler would call the JVM, also in the midst of another call."""
    assert inspect.getsource(context.SparkContext).count("signal.signal(signal.SIGINT, signal_handler)") == 1
    done = subprocess.run(
        [sys.executable, "-c", _START, quick_java_options(), how],
        env={**os.environ, "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.splitlines() == ["True false", "True", str(tmp_path)]
    shown = done.stderr.splitlines()
    if how == "ends":
        assert (done.returncode, shown) == (0, [])
    else:
        assert done.returncode == 1
        assert shown[0] == "ERROR a line of the log"
        assert shown[-1] == "ValueError: it failed"
    assert list(tmp_path.iterdir()) == []  # Spark's own files have gone


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        (
            (
                "WARNING: Using incubator modules: x\nInvalid maximum heap size: -Xmxlots\n"
                "Error: Could not create the Java Virtual Machine.\n"
            ),
            "Invalid maximum heap size: -Xmxlots",
        ),
        (
            'a note\nException in thread "main" java.lang.X: basedir must be absolute\n\tat Main.main(X.java)\n',
            "java.lang.X: basedir must be absolute",
        ),
        ("what it says\nlast\n", "last"),
        ("WARNING: Using incubator modules: jdk.incubator.vector\n", ""),
    ],
)
def test_the_reason_of_a_failed_start_is_the_line_with_the_fault(said: str, reason: str) -> None:
    assert spark_session_module._reason(spark_session_module._lines(BytesIO(said.encode()))) == reason


def test_a_failed_start_says_the_reason_of_java(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    script = file_with(
        tmp_path / "bin" / "spark-submit",
        "#!/bin/sh\necho 'Invalid maximum heap size: -Xmxlots' >&2\nexit 1\n",
    )
    script.chmod(0o755)
    done = subprocess.run(
        [sys.executable, "-c", _OTHERS, "local[1]"],
        env={**os.environ, "SPARK_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    wanted = "SessionFailed Spark does not start at local[1]: Invalid maximum heap size: -Xmxlots\n"
    assert (done.stdout, done.stderr) == (wanted, "")


def test_a_machine_without_a_home_or_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    on_this_machine, options = spark_session_module._on_this_machine, "spark.driver.extraJavaOptions"
    (tmp_path / "a b").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "a b"))
    monkeypatch.setattr(pwd, "getpwuid", lambda _: SimpleNamespace(pw_dir=str(tmp_path)))
    place = f'"-Djava.io.tmpdir={tmp_path}/a b"'
    assert on_this_machine({options: "-Xss4m", "x": "y"}) == {options: f"{place} -Xss4m", "x": "y"}
    monkeypatch.setattr(pwd, "getpwuid", lambda _: SimpleNamespace(pw_dir="/nonexistent"))
    made = on_this_machine({})
    assert made[options] == f'{place} "-Duser.home={tmp_path}/a b"'
    assert made["spark.jars.ivy"] == f"{tmp_path}/a b/.ivy2"

    def none(*_: object) -> str:
        raise FileNotFoundError(2, "No usable temporary directory found")

    monkeypatch.setattr(tempfile, "gettempdir", none)
    with pytest.raises(SessionFailed, match="no folder for temporary files: set TMPDIR"):
        on_this_machine({})


def test_a_user_without_a_name_is_refused_with_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hadoop asks for the name: at once, or when Spark ships jars, files or archives."""

    def foreign(_: int) -> object:
        raise KeyError("getpwuid(): uid not found")

    monkeypatch.setattr(pwd, "getpwuid", foreign)
    with pytest.raises(SessionFailed, match=rf"user id {os.getuid()} has no name .* /etc/passwd"):
        spark_session_module._on_this_machine({})
    text = (ROOT / "Containerfile").read_text()
    assert "useradd --uid 65532" in text


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


@pytest.mark.parametrize(
    ("fault", "logged", "reason"),
    [
        ("stopped", "", "java.lang.IllegalStateException: stopped"),
        (
            "Cannot call methods on a stopped SparkContext",
            (
                "26/11/24 17:33:46 ERROR Backend: Application has been killed. Reason: Master removed it: FAILED\n"
                "26/11/24 17:33:46 ERROR Inbox: Ignoring error\n"
            ),
            "Backend: Application has been killed. Reason: Master removed it: FAILED",
        ),
    ],
)
def test_an_error_of_java_at_the_start_is_one_line(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, fault: str, logged: str, reason: str
) -> None:
    def start(_: object, said: IO[bytes]) -> None:
        said.write(logged.encode())
        raise Py4JError(
            f"An error occurred while calling None.org.X.\n: java.lang.IllegalStateException: {fault}\n\tat X"
        )

    monkeypatch.setattr(type(spark), "getActiveSession", lambda: None)
    monkeypatch.setattr("os.environ", dict(os.environ))
    monkeypatch.setattr("broker_core_spark.batch.spark.spark_session.check_server", lambda _: None)
    monkeypatch.setattr("broker_core_spark.batch.spark.spark_session._start_context", start)
    with pytest.raises(SessionFailed) as raised, spark_session(master="spark://host:1"):
        pass
    assert str(raised.value) == f"Spark does not start at spark://host:1: {reason}"


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


@pytest.mark.parametrize(
    "version", ["4.0.0", "4.0.5", "4.1.4", "4.2.1", "4.3.0", "4.1.0-amzn-1", "4.3.0.dev1"]
)
def test_tested_releases_pass(version: str) -> None:
    check_spark_version(version)


@pytest.mark.parametrize("version", ["3.5.9", "3.10.0", "4.4.0", "4.10.1", "5.0.0", "40.1", "unknown", ""])
def test_others_are_refused_with_what_to_install(version: str) -> None:
    with pytest.raises(SessionFailed, match=r"runs on 4\.0 to 4\.3\. pip install"):
        check_spark_version(version)


def test_a_session_is_not_started_with_another_version(monkeypatch: pytest.MonkeyPatch) -> None:
    import pyspark

    monkeypatch.setattr(pyspark, "__version__", "3.5.9")
    with pytest.raises(SessionFailed, match=r"PySpark is 3\.5\.9"), spark_session(master="local[1]"):
        pytest.fail("a session of a version that is refused")

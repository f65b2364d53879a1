"""The Spark session of a build: the active one, or a new one with measured settings.

The standard error of Java and Spark is kept in a file, and shown if the build fails: a scheduler mails all output.
Under spark-submit, in a notebook or on a managed Spark the session's settings are its owner's. On one machine the heap
may stay small: only names of a table that Spark reads pass through it.
"""

from __future__ import annotations

import os
import pwd
import re
import socketserver
import sys
import tempfile
import warnings
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import IO, TYPE_CHECKING, Any, Final

from broker_core_spark.batch.build_errors import SessionFailed
from broker_core_spark.batch.spark.java_home import find_java_home
from broker_core_spark.batch.spark.reached_server import check_server, shown_master
from broker_core_spark.batch.spark.spark_errors import spark_errors, spark_message

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

__all__ = ["LOCAL_SETTINGS", "SessionFailed", "check_spark_version", "spark_session"]

#: The oldest and the newest release. Spark 3.5 has other checks of UTF-8 in SQL, and its Python warns of itself.
_RELEASES: Final = ((4, 0), (4, 3))
#: Settings of a new local session. ``--conf`` overrides each.
LOCAL_SETTINGS: Final[Mapping[str, str]] = {
    "spark.driver.memory": "1g",
    "spark.ui.enabled": "false",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.session.timeZone": "UTC",
    # Larger batches between the JVM and Python: 2.7 million rows a second instead of 2.4.
    "spark.sql.execution.arrow.maxRecordsPerBatch": "100000",
    # The serial collector is enough beside Python workers.
    "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -Xss4m",
    "spark.sql.execution.pyspark.udf.faulthandler.enabled": "true",
}
#: Setting of every new session: with another master too, bars would reach the mails of a scheduler.
_QUIET: Final[Mapping[str, str]] = {"spark.ui.showConsoleProgress": "false"}
_LOG_SETTING: Final = "spark.log.level"
_JAVA_OPTIONS: Final = "spark.driver.extraJavaOptions"
#: Lines of Java and Spark at each start, which are no fault.
_NOTES: Final = re.compile(
    r"WARNING: Using incubator modules|WARNING: (?:A|Please|Use|All) |Picked up |Using Spark's default log4j profile"
    r"|Setting default log level to|To adjust logging level use|Setting Spark log level to|.* WARN NativeCodeLoader: "
)
_SHOWN: Final = 256 * 1024  # bytes of Java's last output that are shown after a failure
#: The bridge to the JVM that this process has started: later sessions have it too.
_jvms: Final[list[Any]] = []
_CONNECT: Final = "sc://"
#: Java's text about a context that Spark itself stopped, as after ten executors that did not start.
_STOPPED: Final = "stopped SparkContext"
#: Set by spark-submit, whose JVM runs already and whose options decide where the job runs.
_SUBMITTED: Final = "PYSPARK_GATEWAY_PORT"


@contextmanager
def spark_session(
    *, master: str | None = None, conf: Mapping[str, str] | None = None, name: str = "broker-core spark build"
) -> Iterator[SparkSession]:
    """The active session, or a new one that is stopped at the end.

    ``master`` is that of a new one: ``local[2]``, ``spark://...``, ``yarn``, ``k8s://...``, or ``sc://...`` for Spark
    Connect. The default is that of spark-submit, else ``local[*]``. ``conf`` are settings that override
    :data:`LOCAL_SETTINGS`. Raises :exc:`SessionFailed` and :exc:`~.java_home.JavaMissing`.
    """
    try:
        import pyspark
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise SessionFailed(
            "The batch needs PySpark, which serving does not: pip install 'pyspark>=4.1,<4.4' 'pandas>=2.2,<3'"
        ) from error
    check_spark_version(pyspark.__version__)
    active = SparkSession.getActiveSession()
    if active is not None:
        check_spark_version(active.version, "Spark")
        yield active
        return
    if master is None and _SUBMITTED not in os.environ:
        master = "local[*]"
    with tempfile.TemporaryFile() as said:
        session = _made(master, dict(conf or {}), name, said)
        try:
            check_spark_version(session.version, "Spark")
            yield session
        except BaseException as error:
            interruption = _interruption(error)
            # The JVM may be gone, ended by the same signal, and its errors are no fault.
            with suppress(Exception), warnings.catch_warnings(action="ignore"):
                session.stop()
            if interruption is not None:
                raise interruption from None
            if isinstance(error, Exception):
                sys.stderr.writelines(f"{line}\n" for line in _lines(said))
            raise
        session.stop()


def check_spark_version(version: str, title: str = "PySpark") -> None:
    """Raise :exc:`SessionFailed` for a version outside 4.0 to 4.3. ``title`` names the program of the version.

    Text after the second number is ignored: managed Sparks add to it.
    """
    found = re.match(r"(\d+)\.(\d+)(?!\d)", version)
    first, last = _RELEASES
    if found is None or not first <= (int(found[1]), int(found[2])) <= last:
        raise SessionFailed(
            f"{title} is {version[:50]}: the batch runs on {first[0]}.{first[1]} to {last[0]}.{last[1]}. "
            "pip install 'pyspark>=4.1,<4.4'"
        )


def _lines(said: IO[bytes]) -> list[str]:
    """The last lines of Java and Spark, without notes of the start."""
    said.seek(max(0, said.seek(0, os.SEEK_END) - _SHOWN))
    lines = said.read().decode(errors="replace").splitlines()
    return [line for line in lines if line.strip() and not _NOTES.match(line)]


def _start_context(settings: Mapping[str, str], said: IO[bytes]) -> None:
    """Start the context of Spark, and its JVM unless this process has one.

    With ``spark.log.level`` in the settings the log goes to standard error at once. Raises :exc:`SessionFailed` with
    the reason that Java says.
    """
    from pyspark import SparkConf, SparkContext, accumulators
    from pyspark.errors import PySparkException
    from pyspark.java_gateway import launch_gateway

    conf = SparkConf(loadDefaults=False).setAll(list(settings.items()))
    gateway: Any = None
    if not _jvms and _SUBMITTED not in os.environ:
        options = {} if _LOG_SETTING in settings else {"stderr": said}
        try:
            gateway = launch_gateway(conf, popen_kwargs=options)  # type: ignore[no-untyped-call]
        except PySparkException as error:
            raise SessionFailed(
                f"Spark does not start at {settings['spark.master']}: {_reason(_lines(said)) or error}"
            ) from error
        _jvms.append(gateway)
    # A JVM that a signal ends breaks its connection to a server of accumulators, which would print that beside the
    # build's own line. Whatever else breaks it fails the job. The classes have other names in other releases.
    for server in vars(accumulators).values():
        if isinstance(server, type) and issubclass(server, socketserver.BaseServer):
            server.handle_error = lambda *_: None  # type: ignore[method-assign]
    SparkContext(conf=conf, gateway=gateway)  # which the builder of the session finds


def _reason(lines: list[str]) -> str:
    """The line of a failed start that says why."""
    fault = next(
        (at for at, line in enumerate(lines) if re.search(r"Exception|Error|error:|not found|No such", line)),
        -1,
    )
    if fault > 0 and "Could not create the Java Virtual Machine" in lines[fault]:
        fault -= 1
    return re.sub(r'^Exception in thread "[^"]*" ', "", lines[fault].strip())[:1000] if lines else ""


def _logged_reason(lines: list[str]) -> str:
    """The reason that Spark logged before it stopped its context itself: its master's, or its last error."""
    errors = [line.partition(" ERROR ")[2] for line in lines if " ERROR " in line]
    return next((error for error in errors if "Reason:" in error), errors[-1] if errors else "")[:1000]


def _on_this_machine(settings: Mapping[str, str]) -> dict[str, str]:
    """The settings of a JVM here: its folder of temporary files, and a home if its user has none.

    Raises :exc:`SessionFailed` if there is no such folder, and for a user without a name: Hadoop asks for it.
    """
    try:
        folder = tempfile.gettempdir()
    except FileNotFoundError as error:
        raise SessionFailed("There is no folder for temporary files: set TMPDIR") from error
    properties, made = ["java.io.tmpdir"], dict(settings)
    try:
        home = pwd.getpwuid(os.getuid()).pw_dir
    except KeyError:
        raise SessionFailed(
            f"The user id {os.getuid()} has no name here, and Hadoop, which Spark is made on, asks for one: add a "
            "line to /etc/passwd, as the image of broker-core has for 65532, or run as a user with a name"
        ) from None
    if not os.access(home, os.W_OK | os.X_OK):
        properties.append("user.home")
        made.setdefault("spark.jars.ivy", f"{folder}/.ivy2")
    quote = '"' if " " in folder else ""
    options = [f"{quote}-D{name}={folder}{quote}" for name in properties]
    # A later option of Java counts: the settings' options come last.
    made[_JAVA_OPTIONS] = " ".join([*options, made.get(_JAVA_OPTIONS, "")]).strip()
    return made


def _interruption(error: BaseException | None) -> KeyboardInterrupt | None:
    """The interruption that led to an error: PySpark replaces it by its own about a JVM that is gone."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__ or error.__context__
    return error


def _made(master: str | None, conf: dict[str, Any], name: str, said: IO[bytes]) -> SparkSession:
    from pyspark.sql import SparkSession

    # Workers run this Python, unless the operator named another one.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    is_local = master is not None and master.startswith("local")
    quiet = is_local and _LOG_SETTING not in conf
    try:
        builder, conf = SparkSession.builder, {"spark.app.name": name, **conf}
        if master is not None and master.startswith(_CONNECT):
            import pyspark.sql.connect.session  # noqa: F401 - says which packages are missing

            check_server(master)
            builder = builder.remote(master)
        else:
            if master is not None:
                check_server(master)
            if is_local:
                os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
                conf = {**LOCAL_SETTINGS, **conf}
            if _SUBMITTED not in os.environ:
                os.environ["JAVA_HOME"] = str(find_java_home())
                conf = {**_QUIET, "spark.master": str(master), **_on_this_machine(conf)}
            # On a thread of its own, on which PySpark handles no SIGINT: its handler calls the JVM, in which a call may
            # be under way. A signal waits for the end of the start, and the JVM ends with this process.
            with ThreadPoolExecutor(1, "spark-start") as starter:
                starter.submit(_start_context, conf, said).result()
        session = builder.config(map=conf).getOrCreate()
    except spark_errors() as error:
        reason = spark_message(error)
        if _STOPPED in reason:
            reason = _logged_reason(_lines(said)) or reason
        advice = (
            ". Spark Connect needs more of PySpark: pip install 'pyspark[connect]'"
            if isinstance(error, ImportError) and (master or "").startswith(_CONNECT)
            else ""
        )
        raise SessionFailed(
            f"Spark does not start at {shown_master(master or 'its master')}: {reason.rstrip('.')}{advice}"
        ) from error
    if quiet:
        session.sparkContext.setLogLevel("ERROR")
    return session

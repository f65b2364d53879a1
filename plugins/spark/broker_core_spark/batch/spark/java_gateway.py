"""The JVM of a session that this process starts: with what its machine lacks, and without its notes at the start.

A container may have no name for its user, no home and no ``/tmp``. Java then says that the home is ``?``, Hadoop
refuses to log in, and Spark finds no place for its files.
"""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
import threading
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from broker_core.errors import BrokerCoreError

__all__ = ["JavaOutput", "SessionFailed", "start_java", "with_machine_settings"]

_OPTIONS: Final = "spark.driver.extraJavaOptions"
_LOCAL: Final = "spark.local.dir"
#: What Java and Spark say at each start. They say it to nobody: a scheduler mails all output.
_NOTES: Final = re.compile(
    r"WARNING: Using incubator modules|WARNING: (?:A|Please|Use|All) |Picked up |Using Spark's default log4j profile"
    r"|Setting default log level to|To adjust logging level use|Setting Spark log level to|.* WARN NativeCodeLoader: "
)
#: The JVM that this process has started.
_started: Final[list[Any]] = []
_KEPT: Final = 50  # lines of Java that an error may be in


class SessionFailed(BrokerCoreError):
    """No Spark session. The message says why."""


def with_machine_settings(settings: Mapping[str, str]) -> dict[str, str]:
    """The settings of a new session, and what its JVM needs of a machine that lacks it.

    The folder of temporary files is ``spark.local.dir`` of the settings, else ``SPARK_LOCAL_DIRS``, else that of
    ``TMPDIR`` and the system. Where the system has no folder, ``TMPDIR`` becomes this one. Raises :exc:`SessionFailed`
    without any.
    """
    made = dict(settings)
    folder = _temporary(made)
    # Spark's own files are there too. `spark.local.dir` would be for executors as well, on other machines.
    options = [_option("java.io.tmpdir", folder)]
    if not _home_is_usable():
        options.append(_option("user.home", folder))
        made.setdefault("spark.jars.ivy", f"{folder}/.ivy2")
    # A later option of Java counts: what the settings say is behind.
    made[_OPTIONS] = " ".join([*options, made.get(_OPTIONS, "")]).strip()
    return made


def start_java(settings: Mapping[str, str], output: JavaOutput) -> None:
    """Start the JVM and the context of a session, with ``spark.master`` and others. One JVM is enough for a process.

    Raises :exc:`SessionFailed` with the reason that Java says.
    """
    from pyspark import SparkConf, SparkContext
    from pyspark.errors import PySparkException
    from pyspark.java_gateway import launch_gateway

    if _started:
        return
    user = None if _user_has_a_name() else os.environ.setdefault("SPARK_USER", f"uid-{os.getuid()}")
    conf = SparkConf(loadDefaults=False)
    for key, value in settings.items():
        conf.set(key, value)
    try:
        with _ended_if_interrupted():
            # In a group of its own: a signal to the group of this process, as Airflow sends it, would end the JVM under
            # a running job, which it would complain about. It ends when its parent does.
            options = {"stderr": output.opened(), "process_group": 0}
            gateway: Any = launch_gateway(conf, popen_kwargs=options)  # type: ignore[no-untyped-call]
    except PySparkException as error:
        said = output.reason() or str(error)
        raise SessionFailed(f"Spark does not start at {settings['spark.master']}: {said}") from error
    finally:
        output.close_own_end()
    _started.append(gateway)
    output.pass_on()
    if user is not None:
        _log_in(gateway, os.environ.get("HADOOP_USER_NAME", user))
    SparkContext(conf=conf, gateway=gateway)  # which the builder of the session finds


@contextmanager
def _ended_if_interrupted() -> Iterator[None]:
    """End the JVM that PySpark starts inside, should a signal interrupt the start.

    PySpark then removes the folder that the JVM is about to write to. The JVM's main thread ends by that, and no longer
    sees that its parent is gone: it would stay for ever.
    """
    import pyspark.java_gateway

    of_pyspark: Any = pyspark.java_gateway
    started: list[subprocess.Popen[bytes]] = []

    class Noted(subprocess.Popen):  # type: ignore[type-arg]
        def __init__(self, *args: Any, **options: Any) -> None:
            started.append(self)
            super().__init__(*args, **options)

    before = of_pyspark.Popen
    of_pyspark.Popen = Noted
    try:
        yield
    except BaseException:
        for process in started:
            with suppress(AttributeError, OSError):  # it was not started yet
                process.kill()
                process.communicate()  # closes the pipe to it, and waits
        raise
    finally:
        of_pyspark.Popen = before


class JavaOutput:
    """What a JVM and its workers say on standard error: passed on line by line, without notes of the start.

    Until :meth:`pass_on` the lines are kept, and after :meth:`hush` they are dropped.
    """

    def __init__(self) -> None:
        self._lines: deque[str] = deque(maxlen=_KEPT)
        self._lock = threading.Lock()
        self._passes = self._hushed = False
        self._end: int | None = None
        self._thread: threading.Thread | None = None

    def opened(self) -> int:
        """The end to write to."""
        reading, self._end = os.pipe()
        self._thread = threading.Thread(target=self._read, args=(reading,), name="java-output", daemon=True)
        self._thread.start()
        return self._end

    def close_own_end(self) -> None:
        """Close this process's copy of the end to write to: the last copy is then the JVM's."""
        if self._end is not None:
            os.close(self._end)
            self._end = None

    def pass_on(self) -> None:
        """Write kept and later lines to standard error."""
        with self._lock:
            self._passes = True
            while self._lines:
                self._write(self._lines.popleft())

    def hush(self) -> None:
        """Drop later lines: at its end, and more so at one by a signal, Java complains about what is no fault."""
        self._hushed = True

    def reason(self) -> str:
        """The line of a failed start that says why, once Java has ended."""
        self.close_own_end()
        if self._thread is not None:
            self._thread.join(5)
        with self._lock:
            lines = [line.strip() for line in self._lines if line.strip()]
        faults = [line for line in lines if re.search(r"Exception|Error|error:|not found|No such", line)]
        said = (faults or lines[-1:] or [""])[0]
        return re.sub(r'^Exception in thread "[^"]*" ', "", said)[:1000]

    def _read(self, reading: int) -> None:
        with open(reading, encoding="utf-8", errors="replace") as lines:
            for line in lines:
                if _NOTES.match(line) or self._hushed:
                    continue
                with self._lock:
                    if self._passes:
                        self._write(line)
                    else:
                        self._lines.append(line)

    @staticmethod
    def _write(line: str) -> None:
        with suppress(OSError):
            os.write(2, line.encode(errors="replace"))


def _temporary(settings: Mapping[str, str]) -> str:
    given = settings.get(_LOCAL) or os.environ.get("SPARK_LOCAL_DIRS", "")
    folder = given.partition(",")[0].strip()
    try:
        system = tempfile.gettempdir()
    except FileNotFoundError as error:
        if not folder:
            raise SessionFailed(
                f"There is no folder for temporary files ({error.strerror or error}): set TMPDIR, or --conf {_LOCAL}="
            ) from error
        os.environ["TMPDIR"] = system = folder  # PySpark and its workers look there
    folder = folder or system
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)  # as Spark makes its local folders
    except OSError as error:
        raise SessionFailed(
            f"{folder}: the folder for temporary files cannot be made ({error.strerror or error}): "
            "set TMPDIR to another"
        ) from error
    if not os.access(folder, os.W_OK | os.X_OK):
        raise SessionFailed(
            f"{folder}: the folder for temporary files cannot be written: set TMPDIR to another"
        )
    return str(Path(folder).absolute())


def _option(name: str, value: str) -> str:
    return f'"-D{name}={value}"' if " " in value else f"-D{name}={value}"


def _user_has_a_name() -> bool:
    try:
        import pwd

        pwd.getpwuid(os.getuid())
    except KeyError:
        return False
    except ImportError:  # Windows
        pass
    return True


def _home_is_usable() -> bool:
    """Whether Java's home, that of the system's list of users, is a folder to write to."""
    try:
        import pwd

        return os.access(pwd.getpwuid(os.getuid()).pw_dir, os.W_OK | os.X_OK)
    except KeyError:
        return False
    except ImportError:
        return True


def _log_in(gateway: Any, name: str) -> None:
    """Tell Hadoop who its user is: its own login asks the system for a name, and ends without one."""
    users: Any = gateway.jvm.org.apache.hadoop.security.UserGroupInformation
    users.setLoginUser(users.createRemoteUser(name))

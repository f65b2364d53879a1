"""A session's JVM has a user, a home and a folder for temporary files where the machine has none."""

from __future__ import annotations

import os
import pwd
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyspark.java_gateway
import pytest

from broker_core_spark.batch.spark import java_gateway
from broker_core_spark.batch.spark.java_gateway import (
    JavaOutput,
    SessionFailed,
    start_java,
    with_machine_settings,
)
from broker_core_spark.commands.stop_signals import Stopped

OPTIONS = "spark.driver.extraJavaOptions"


def foreign(_: int) -> Any:
    raise KeyError("getpwuid(): uid not found")


@pytest.fixture(autouse=True)
def _home_and_temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setattr(pwd, "getpwuid", lambda _: SimpleNamespace(pw_dir=str(tmp_path)))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.delenv("SPARK_LOCAL_DIRS", raising=False)


def test_a_usual_machine_gives_its_folder_alone(tmp_path: Path) -> None:
    made = with_machine_settings({OPTIONS: "-Xss4m", "spark.x": "y"})
    assert made == {OPTIONS: f"-Djava.io.tmpdir={tmp_path} -Xss4m", "spark.x": "y"}


@pytest.mark.parametrize("home", [None, "/nonexistent"], ids=["no user", "no home"])
def test_without_a_home_it_is_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, home: str | None
) -> None:
    monkeypatch.setattr(pwd, "getpwuid", foreign if home is None else lambda _: SimpleNamespace(pw_dir=home))
    made = with_machine_settings({"spark.jars.ivy": "/mine"})
    assert made[OPTIONS] == f"-Djava.io.tmpdir={tmp_path} -Duser.home={tmp_path}"
    assert made["spark.jars.ivy"] == "/mine"
    assert with_machine_settings({})["spark.jars.ivy"] == f"{tmp_path}/.ivy2"


def test_the_settings_come_before_the_environment_and_the_system(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    places = {name: tmp_path / name for name in ("set tings", "environment", "second")}
    for place in places.values():
        place.mkdir()
    monkeypatch.setenv("SPARK_LOCAL_DIRS", f"{places['environment']},{places['second']}")
    assert with_machine_settings({})[OPTIONS] == f"-Djava.io.tmpdir={places['environment']}"
    made = with_machine_settings({"spark.local.dir": str(places["set tings"])})
    assert made[OPTIONS] == f'"-Djava.io.tmpdir={places["set tings"]}"'
    assert os.environ["TMPDIR"] == str(tmp_path)


def test_without_a_folder_of_the_system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def none() -> str:
        raise FileNotFoundError(2, "No usable temporary directory found")

    monkeypatch.setattr(tempfile, "gettempdir", none)
    with pytest.raises(SessionFailed, match=r"no folder for temporary files .* set TMPDIR"):
        with_machine_settings({})
    (tmp_path / "scratch").mkdir()
    with_machine_settings({"spark.local.dir": str(tmp_path / "scratch")})
    assert os.environ["TMPDIR"] == str(tmp_path / "scratch")  # PySpark makes a folder there
    with_machine_settings({"spark.local.dir": str(tmp_path / "new" / "folder")})
    assert (tmp_path / "new" / "folder").is_dir()
    (tmp_path / "file").touch()
    with pytest.raises(SessionFailed, match="nowhere: the folder for temporary files cannot be made"):
        with_machine_settings({"spark.local.dir": str(tmp_path / "file" / "nowhere")})


def test_what_java_says_is_passed_on_without_notes_of_the_start(capfd: pytest.CaptureFixture[str]) -> None:
    output = JavaOutput()
    end = os.fdopen(os.dup(output.opened()), "w")
    end.write(
        'WARNING: Using incubator modules: jdk.incubator.vector\nSetting default log level to "WARN".\nfirst\n'
    )
    end.flush()
    output.pass_on()
    end.write("26/11/23 01:00:45 WARN NativeCodeLoader: Unable\nsecond\n")
    end.close()
    assert output.reason() == ""  # all is passed on, once the last line has come
    assert capfd.readouterr().err == "first\nsecond\n"


def test_the_reason_of_a_failed_start_is_the_line_with_the_fault(capfd: pytest.CaptureFixture[str]) -> None:
    output = JavaOutput()
    end = os.fdopen(os.dup(output.opened()), "w")
    end.write(
        'a note\nException in thread "main" java.lang.X: basedir must be absolute\n\tat Main.main(X.java)\n'
    )
    end.close()
    assert output.reason() == "java.lang.X: basedir must be absolute"
    assert capfd.readouterr().err == ""


def test_after_a_signal_java_is_not_heard(capfd: pytest.CaptureFixture[str]) -> None:
    output = JavaOutput()
    end = os.fdopen(os.dup(output.opened()), "w")
    output.pass_on()
    output.hush()
    end.write("ERROR the connection to Python is lost\n")
    end.close()
    assert output.reason() == ""
    assert capfd.readouterr().err == ""


def test_no_jvm_stays_where_a_signal_interrupts_its_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A JVM that never says where it listens, and does not care whether its parent is there.
    (tmp_path / "bin").mkdir()
    script = tmp_path / "bin" / "spark-submit"
    script.write_text(f"#!/bin/sh\necho $$ > {tmp_path}/number\nexec sleep 600\n")
    script.chmod(0o755)
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    monkeypatch.delenv("PYSPARK_GATEWAY_PORT", raising=False)
    monkeypatch.setattr(java_gateway, "_started", [])

    def interrupted(_: float) -> None:
        if (tmp_path / "number").exists() and (tmp_path / "number").read_text():
            raise Stopped(15)

    monkeypatch.setattr("pyspark.java_gateway.time.sleep", interrupted)
    of_pyspark: Any = pyspark.java_gateway
    popen = of_pyspark.Popen
    with pytest.raises(Stopped):
        start_java({"spark.master": "local[1]"}, JavaOutput())
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "number").read_text()), 0)
    assert of_pyspark.Popen is popen

"""The chosen Java, and the message without a suitable one."""

from __future__ import annotations

from pathlib import Path

import pytest

from broker_core_spark.batch.spark import java_home
from broker_core_spark.batch.spark.java_home import JavaMissing, find_java_home
from tests.support.files import file_with


def java(home: Path, version: str) -> Path:
    """A folder like the home of a Java, whose program prints its version."""
    (home / "bin").mkdir(parents=True)
    program = file_with(home / "bin" / "java", f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
    program.chmod(0o755)
    return home


@pytest.fixture(autouse=True)
def _nothing_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "none"))
    monkeypatch.setattr(java_home, "_HOMES", tmp_path / "jvm")


@pytest.mark.parametrize("version", ["17.0.15", "21"])
def test_java_home_counts_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    home = java(tmp_path / "home", version)
    java(tmp_path / "jvm" / "java-21", "21.0.1")
    monkeypatch.setenv("JAVA_HOME", str(home))
    assert find_java_home() == home


@pytest.mark.parametrize("version", ["25.0.1", "11.0.2", "1.8.0_402"])
def test_a_java_home_that_is_too_old_or_too_new_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str
) -> None:
    java(tmp_path / "jvm" / "java-17", "17.0.1")
    monkeypatch.setenv("JAVA_HOME", str(java(tmp_path / "home", version)))
    with pytest.raises(
        JavaMissing, match=rf"is Java {version.partition('.')[0]}: Spark runs on Java 17 or Java 21"
    ):
        find_java_home()


def test_java_home_without_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(JavaMissing, match="which is no Java"):
        find_java_home()


def test_the_path_then_what_is_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installed = java(tmp_path / "jvm" / "temurin-21-jre", "21.0.3")
    java(tmp_path / "jvm" / "a-25", "25")
    newest = java(tmp_path / "newest", "25.0.1")
    monkeypatch.setenv("PATH", str(newest / "bin"))
    assert find_java_home() == installed
    wanted = java(tmp_path / "wanted", "17.0.1")
    monkeypatch.setenv("PATH", str(wanted / "bin"))
    assert find_java_home() == wanted


def test_nothing_that_fits_is_said_with_what_there_is(tmp_path: Path) -> None:
    with pytest.raises(JavaMissing, match=r"there is none\. Install one .*openjdk-17-jre-headless"):
        find_java_home()
    home = java(tmp_path / "jvm" / "temurin-25", "25")
    with pytest.raises(JavaMissing) as caught:
        find_java_home()
    assert f"found only Java 25 in {home}" in str(caught.value)

"""All lines of a server go through one log."""

from __future__ import annotations

import json
import logging
import os
import sys
import threading
import traceback
import warnings
from pathlib import Path
from typing import Any

import pytest
import structlog

from broker_core.cli.server_process.server_log import configure_logs, server_log, silence_logs
from broker_core.logs import LogFileError, LogRenderer, RepeatedLines, dropped_lines
from tests.support.eventually import eventually_sync
from tests.support.files import file_with


def json_lines(level: Any = "info") -> list[str]:
    lines: list[str] = []
    configure_logs(level, LogRenderer(human=False), RepeatedLines(), lines.append)
    return lines


def test_our_lines_and_those_of_libraries() -> None:
    lines = json_lines()
    structlog.get_logger("x").info("listing failed", namespace="a/b", größe=3)
    structlog.get_logger("x").debug("not heard")
    logging.getLogger("lib").warning("careful %s", "now")
    logging.getLogger("lib").debug("not heard")
    logging.getLogger("aiohttp.access").info("not heard either")
    logging.getLogger("a_plugin").info("heard as ours are")
    ours, theirs, plugins = (json.loads(line) for line in lines)
    assert (plugins["event"], plugins["level"]) == ("heard as ours are", "info")
    assert (ours["event"], ours["level"], ours["namespace"], ours["größe"]) == (
        "listing failed",
        "info",
        "a/b",
        3,
    )
    assert ours["timestamp"].endswith("Z")
    assert theirs["timestamp"].endswith("Z")
    assert (theirs["event"], theirs["level"], theirs["logger"]) == ("careful now", "warning", "lib")


def test_lines_for_a_person() -> None:
    lines: list[str] = []
    configure_logs("debug", LogRenderer(human=True), RepeatedLines(), lines.append)
    structlog.get_logger("x").debug("listing failed", namespace="a/b")
    (line,) = lines
    assert "listing failed" in line
    assert "namespace=a/b" in line
    assert "\x1b" not in line


def test_an_exception_is_in_its_line() -> None:
    lines = json_lines()
    try:
        raise ValueError("odd")
    except ValueError:
        structlog.get_logger("x").exception("failed")
        logging.getLogger("lib").exception("failed too")
    assert len(lines) == 2
    for line in lines:
        assert "ValueError: odd" in json.loads(line)["exception"]


def test_a_message_whose_arguments_do_not_fit_is_shown() -> None:
    lines = json_lines()
    logging.getLogger("lib").warning("%d files", "many")
    assert json.loads(lines[0])["event"] == "%d files ('many',)"


def test_what_clients_cause_is_folded_and_counted() -> None:
    before = dropped_lines.counts()["rate"]
    lines = json_lines()
    for peer in range(100):
        structlog.get_logger("broker_core.servers.connection.client_connection").info(
            "bad frame", peer=peer, reason="bad_frame"
        )
        logging.getLogger("aiohttp.server").error("Error handling request from %s", peer)
        structlog.get_logger("a-plugin").info("mine", number=peer)
    assert len(lines) == 102
    assert dropped_lines.counts()["rate"] - before == 198


def test_a_thousand_lines_from_everywhere_arrive_each_once(capfd: pytest.CaptureFixture[str]) -> None:
    before = dropped_lines.counts()

    def say(number: int) -> None:
        match number % 4:
            case 0:
                structlog.get_logger("a-plugin").info("said", number=number)
            case 1:
                logging.getLogger("lib").warning("said %d", number)
            case 2:
                print("said", number, file=sys.stderr)
            case 3:
                warnings.warn(f"said {number}", UserWarning, stacklevel=1)

    def say_from(start: int) -> None:
        for number in range(start, start + 1000):
            say(number)

    with server_log(None, "info", "json"):
        warnings.simplefilter("always")  # each once, although it is the same line of code
        threads = [threading.Thread(target=say_from, args=(start,)) for start in range(0, 4000, 1000)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    said = [json.loads(line) for line in capfd.readouterr().err.splitlines()]
    numbers = sorted(each["number"] for each in said if "number" in each)
    assert numbers == list(range(0, 4000, 4))
    stdlib = sorted(int(each["event"].split()[1]) for each in said if each.get("logger") == "lib")
    assert stdlib == list(range(1, 4000, 4))
    printed = [each["event"] for each in said if each["event"].startswith("said ")]
    for number in range(2, 4000, 4):
        assert f"said {number}" in printed
    # Warnings are what clients may cause: folded, and the counts add up.
    warned = [each for each in said if each.get("logger") == "py.warnings"]
    assert sum(each.get("repeats", 1) for each in warned) == 1000
    after = dropped_lines.counts()
    assert (after["full"], after["failed"]) == (before["full"], before["failed"])


def test_what_is_printed_is_a_line_of_the_log_or_of_the_output(capfd: pytest.CaptureFixture[str]) -> None:
    out, err = sys.stdout, sys.stderr
    with server_log(None, "info", "json"):
        print("ready pulsar=1", flush=True)
        print("\x1b[31mred", file=sys.stderr)
        try:
            raise ValueError("a\x1b[0mb")
        except ValueError:
            traceback.print_exc()
        print("without an end", end="", file=sys.stderr)
    assert (sys.stdout, sys.stderr) == (out, err)
    said = capfd.readouterr()
    assert said.out == "ready pulsar=1\n"
    lines = [json.loads(line) for line in said.err.splitlines()]
    assert {line["logger"] for line in lines} == {"stderr"}
    assert lines[0]["event"] == "\x1b[31mred"
    assert "\x1b" not in said.err
    assert lines[-2]["event"] == "ValueError: a\x1b[0mb"
    assert lines[-1]["event"] == "without an end"


def test_a_pipe_that_nobody_reads_holds_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also not the end."""
    reader, writer = os.pipe()
    out, err = os.dup(1), os.dup(2)
    before = dropped_lines.counts()["full"]
    threads = {*threading.enumerate()}
    os.dup2(writer, 1)
    os.dup2(writer, 2)
    try:
        with server_log(None, "info", "json"):
            for number in range(60_000):
                structlog.get_logger("a-plugin").info("x" * 200, number=number)
            print("ready")
            print("x", file=sys.stderr)
        # On a busy machine they give up later than the log ends: what they write then is for no other test.
        eventually_sync(lambda: {*threading.enumerate()} <= threads, what="the end of its threads")
    finally:
        os.dup2(out, 1)
        os.dup2(err, 2)
        for descriptor in (out, err, reader, writer):
            os.close(descriptor)
    assert dropped_lines.counts()["full"] - before > 10_000


def test_a_file_takes_the_log_and_is_opened_anew(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    file = file_with(tmp_path / "broker-core.log", "before\n")
    with server_log(file, "info", "auto") as log:
        structlog.get_logger("x").info("one")
        log.flush(10)
        file.rename(tmp_path / "broker-core.log.1")
        log.reopen()
        structlog.get_logger("x").info("two")
    assert "one" in (tmp_path / "broker-core.log.1").read_text()
    assert (tmp_path / "broker-core.log.1").read_text().startswith("before\n")
    assert json.loads(file.read_text())["event"] == "two"
    assert file.stat().st_mode & 0o777 == 0o640
    assert capfd.readouterr() == ("", "")


def test_a_file_that_cannot_be_opened_anew_leaves_the_former_one(tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    with server_log(folder / "a.log", "info", "json") as log:
        log.flush(10)
        folder.rename(tmp_path / "moved")
        with pytest.raises(LogFileError, match=r"log\.file: cannot write .*a\.log: No such file"):
            log.reopen()
        structlog.get_logger("x").info("still here")
    assert "still here" in (tmp_path / "moved" / "a.log").read_text()
    with pytest.raises(LogFileError), server_log(tmp_path, "info", "json"):
        pass


def test_silence(capsys: pytest.CaptureFixture[str]) -> None:
    silence_logs()
    structlog.get_logger("x").error("not heard")
    logging.getLogger("lib").error("not heard")
    assert capsys.readouterr() == ("", "")

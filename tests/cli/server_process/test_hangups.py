"""SIGHUP, and the settings file of a server that runs, whatever becomes of it."""

from __future__ import annotations

import json
import os
import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from broker_core.cli.running_broker import get
from tests.cli.server_process.serving import COMMAND, Server, started
from tests.support.eventually import eventually_sync
from tests.support.files import file_with


def test_a_hangup_opens_the_log_file_anew_and_ends_nothing(servers: list[Server], tmp_path: Path) -> None:
    config = file_with(tmp_path / "f.toml", '[pulsar]\nlisten = "127.0.0.1:0"\n[log]\nfile = "served.log"\n')
    server = started(servers, tmp_path, "--config", str(config))
    log, moved = tmp_path / "served.log", tmp_path / "served.log.1"
    eventually_sync(log.exists, what="it has begun to start")
    server.process.send_signal(signal.SIGHUP)
    server.ready()
    eventually_sync(lambda: '"ready"' in log.read_text(), what="the log")
    log.rename(moved)
    server.process.send_signal(signal.SIGHUP)
    eventually_sync(lambda: log.exists() and '"log file"]' in log.read_text(), what="a new log")
    log.unlink()
    (tmp_path / "served.log").mkdir()  # now it cannot be opened: what is open goes on
    for _ in range(3):
        server.process.send_signal(signal.SIGHUP)
    server.process.terminate()
    assert server.end() == 0
    assert '"ready"' in moved.read_text()
    assert server.log.read_text() == ""


def test_a_hangup_while_it_starts_is_not_missed(servers: list[Server], tmp_path: Path) -> None:
    config = tmp_path / "f.toml"
    text = '[pulsar]\nlisten = "127.0.0.1:0"\n[log]\nfile = "served.log"\n'
    config.write_text(text)
    server = started(servers, tmp_path, "--config", str(config), command=COMMAND)
    log = tmp_path / "served.log"
    eventually_sync(log.exists, what="it has begun to start, and read its file")
    config.write_text(text + "[limits]\npermit_queue = 7\n")

    def is_heard() -> bool:
        if '"event":"reloaded"' in log.read_text():
            return True
        server.process.send_signal(signal.SIGHUP)
        return False

    eventually_sync(is_heard, what="a signal that is heard, as a rule before the server is ready")
    server.ready()
    eventually_sync(lambda: '"setting":"limits.permit_queue"' in log.read_text(), what="the change")
    server.process.terminate()
    assert server.end() == 0


def test_whatever_becomes_of_the_file_the_server_goes_on(servers: list[Server], tmp_path: Path) -> None:
    config, real = tmp_path / "f.toml", tmp_path / "real.toml"
    text = '[pulsar]\nlisten = "127.0.0.1:0"\n[admin]\nsocket = "a"\n[limits]\npermit_queue = {}\n'
    config.write_text(text.format(1))
    server = started(servers, tmp_path, "--config", str(config))
    server.ready()
    socket = f"unix:{tmp_path}/a"

    def reloaded(method: str = "POST") -> dict[str, Any]:
        told: dict[str, Any] = json.loads(get(socket, "/-/reload", method=method))
        return told

    def as_symlink() -> None:
        config.unlink()
        real.write_text(text.format(3))
        config.symlink_to(real)

    def as_pipe() -> None:
        config.unlink()
        os.mkfifo(config)

    def as_folder() -> None:
        config.unlink()
        config.mkdir()

    def by_rename() -> None:
        config.rmdir()
        real.write_text(text.format(4))
        real.replace(config)

    of_other = f"/-/reload?file={tmp_path}/other.toml"
    refused = f"the server reads {config}, and not {tmp_path}/other.toml: nothing is read again"
    assert json.loads(get(socket, of_other, method="POST"))["failed"] == {"settings": refused}
    for change, fails in (
        (lambda: config.write_text(text.format(2)), ""),  # truncated and written
        (as_symlink, ""),
        (lambda: real.write_bytes(b""), "it has no setting"),
        (lambda: real.write_text("# " + "x" * 10_000_000), "larger than a settings file may be"),
        (lambda: real.write_text("[limits"), "not valid TOML"),
        (lambda: real.write_text("x = " + "[" * 100_000), "not valid TOML"),
        (real.unlink, "No such file"),
        (as_pipe, "no file that can be read again"),
        (as_folder, "no file that can be read again"),
        (by_rename, ""),
    ):
        change()
        for method in ("GET", "POST"):
            assert fails in reloaded(method)["failed"].get("settings", "")
        failing = get(socket, "/metrics").split('broker_core_reload_failing{part="settings"} ')[1][0]
        assert failing == ("1" if fails else "0")
    # Many at once: signals are joined, and the last file is in force.
    config.write_text(text.format(5))
    with ThreadPoolExecutor(8) as pool:
        asked = [pool.submit(reloaded) for _ in range(8)]
        for _ in range(200):
            server.process.send_signal(signal.SIGHUP)
        config.write_text(text.format(6))
        server.process.send_signal(signal.SIGHUP)
        assert all(each.result()["failed"] == {} for each in asked)
    eventually_sync(lambda: not reloaded("GET")["changed"], what="the last file in force")
    server.process.terminate()
    assert server.end() == 0
    assert "permit_queue" in server.log.read_text()
    assert "Traceback" not in server.log.read_text()


def test_a_hangup_without_anything_to_reload_says_so(servers: list[Server], tmp_path: Path) -> None:
    server = started(servers, tmp_path, "--pulsar", "127.0.0.1:0")
    server.ready()
    server.process.send_signal(signal.SIGHUP)
    eventually_sync(lambda: '"event":"reloaded"' in server.log.read_text(), what="the line")
    server.process.terminate()
    assert server.end() == 0


def test_a_hangup_changes_the_log_and_how_the_server_ends(servers: list[Server], tmp_path: Path) -> None:
    config, other = tmp_path / "f.toml", tmp_path / "other.log"
    text = '[log]\nlevel = "{}"\nformat = "{}"\nfile = "{}"\n[pulsar]\nlisten = "127.0.0.1:0"\n'
    config.write_text(text.format("error", "json", ""))
    server = started(servers, tmp_path, "--config", str(config))
    server.ready()
    drains = 'drain_delay = "7ms"\ndrain_timeout = "9s"\n'
    config.write_text(text.format("info", "human", "other.log") + drains)
    server.process.send_signal(signal.SIGHUP)
    eventually_sync(
        lambda: other.exists() and "reloaded" in other.read_text(), what="a line in the other file"
    )
    server.process.terminate()
    assert server.end() == 0
    (stopping,) = (line for line in other.read_text().splitlines() if "stopping" in line)
    assert "delay=0.007 drain=9.0" in stopping  # as people read it
    assert "stopping" not in server.log.read_text()

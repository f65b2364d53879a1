"""The owner of a mark can be asked on its own machine, and only there."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from broker_core_spark.store.mark_owner import MarkOwner, boot_seconds, user_name


def test_it_is_written_and_read_again() -> None:
    owner = MarkOwner.this_process("a1")
    assert MarkOwner.parse(owner.to_bytes()) == owner
    assert (owner.pid, owner.run) == (os.getpid(), "a1")
    assert f"run a1 of {user_name()} on {owner.host}, process {os.getpid()}, since " in str(owner)


@pytest.mark.parametrize(
    "data",
    [None, b"", b"{", b"[]", b"null", b'{"host": "h"}', b'{"x": 1}', b"[" * 100_000, b"\xff"],
)
def test_what_is_none(data: bytes | None) -> None:
    assert MarkOwner.parse(data) is None


def test_a_value_of_another_type_is_none() -> None:
    values = json.loads(MarkOwner.this_process("a1").to_bytes())
    for key in values:
        assert MarkOwner.parse(json.dumps({**values, key: []}).encode()) is None


@pytest.mark.skipif(not Path("/proc/self/ns/pid").exists(), reason="processes are asked by /proc")
def test_only_a_process_of_this_machine_can_be_asked() -> None:
    owner = MarkOwner.this_process("a1")
    assert owner.is_alive() is True
    assert replace(owner, started="1").is_alive() is False  # another process has the number now
    assert replace(owner, boot="another").is_alive() is None
    assert replace(owner, namespace="pid:[1]").is_alive() is None
    assert replace(owner, started="").is_alive() is None


@pytest.mark.skipif(not Path("/proc/self/ns/pid").exists(), reason="processes are asked by /proc")
def test_a_process_that_has_ended_is_dead() -> None:
    script = "import sys; from broker_core_spark.store.mark_owner import MarkOwner as M; "
    script += "sys.stdout.buffer.write(M.this_process('a2').to_bytes())"
    child = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE)
    assert child.stdout is not None
    owner = MarkOwner.parse(child.stdout.read())
    assert owner is not None
    assert owner.pid == child.pid
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)  # it has ended, and its parent has not asked yet
    assert owner.is_alive() is False
    child.communicate()
    assert owner.is_alive() is False


def test_the_clock_does_not_go_back() -> None:
    assert boot_seconds() <= boot_seconds()

"""Kafka's definitions of its messages are those of its jar, and what is made of them encodes as its own codec does."""

from __future__ import annotations

import subprocess
import zipfile
from collections.abc import Iterator
from pathlib import Path, PurePath

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker_core.wire.kafka import Api
from scripts.kafka_tables import DEFINITIONS
from tests.interop.kafka_peer.jars import HERE, kafka_jars
from tests.interop.kafka_programs import kafka_program
from tests.interop.maven import PeerUnavailable
from tests.scripts.test_kafka_tables import EACH
from tests.support.kafka_oracles import DIRECTIONS
from tests.support.kafka_values import EXAMPLES, messages, versions_of, written

pytestmark = pytest.mark.interop


@pytest.fixture(scope="module")
def jars() -> Path:
    try:
        return kafka_jars()
    except PeerUnavailable as error:
        pytest.skip(str(error))


def test_the_definitions_are_kafkas(jars: Path) -> None:
    (path,) = jars.glob("kafka-clients-*.jar")
    with zipfile.ZipFile(path) as jar:
        theirs = {
            PurePath(name).name: jar.read(name)
            for name in jar.namelist()
            if name in ("LICENSE", "NOTICE")
            or PurePath(name).match("common/message/*Request.json")
            or PurePath(name).match("common/message/*Response.json")
        }
    assert {file.name: file.read_bytes() for file in DEFINITIONS.iterdir()} == theirs


@pytest.fixture(scope="module")
def codec(jars: Path) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        kafka_program(HERE / "MessageCodec.java"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        bufsize=1,
    ) as java:
        yield java


@pytest.mark.parametrize("api", EACH.values(), ids=lambda api: api.name)
@settings(max_examples=EXAMPLES)
@given(data=st.data())
def test_kafkas_codec_reads_and_writes_the_same(
    codec: subprocess.Popen[str], api: Api, data: st.DataObject
) -> None:
    assert codec.stdin is not None
    assert codec.stdout is not None
    for _, version in versions_of(api):
        for direction, value in zip(DIRECTIONS, data.draw(messages(api, version)), strict=True):
            message = written(api, direction, version, value).hex()
            codec.stdin.write(f"{api.key} {version} {direction} {message}\n")
            assert codec.stdout.readline() == f"0 {message}\n"

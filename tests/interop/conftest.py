"""Fixtures: one real broker for all scenes, and a gateway for each scene."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.interop.gate import Gate
from tests.interop.pulsar_peer import PeerUnavailable, PulsarBroker
from tests.interop.stage import Stage
from tests.support.served import Served
from tests.support.vectors import pattern_vectors


def gateway_settings(broker: PulsarBroker, gate: Gate | None = None) -> dict[str, dict[str, Any]]:
    """The tables of a gateway before ``broker``, with the plugin of the scenes if there is a ``gate``."""
    tables: dict[str, dict[str, Any]] = {"upstream": {"service_url": broker.service_url}}
    if gate is not None:
        tables["plugins"] = {"enabled": ["gate"], "gate": gate.settings}
    return tables


@pytest.fixture(scope="session")
def pulsar_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PulsarBroker]:
    """A real Pulsar broker with the hostile names of the recorded vectors in it."""
    try:
        broker = PulsarBroker(tmp_path_factory.mktemp("pulsar"))
    except PeerUnavailable as error:
        pytest.skip(str(error))
    vectors = pattern_vectors()
    broker.populate({vectors["namespace"]: vectors["stored_names"]})
    with broker:
        yield broker


@pytest.fixture(scope="session")
def gateway(pulsar_broker: PulsarBroker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A gateway without plugins."""
    with Served(tmp_path_factory.mktemp("gateway"), gateway_settings(pulsar_broker)) as served:
        yield served


@pytest.fixture(scope="session")
def new_stage(
    pulsar_broker: PulsarBroker, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[str], Stage]]:
    """Makes the stage of a scene: a gateway with the plugin `gate`, whose circuit no other scene can open."""
    gateways: list[Served] = []

    def make(name: str) -> Stage:
        folder: Path = tmp_path_factory.mktemp(name)
        gate = Gate(folder)
        # The plugin shows and hides topics as scenes have it, without a change log that says what is meant.
        settings = gateway_settings(pulsar_broker, gate)
        settings["shrink_guard"] = {"enabled": False}
        served = Served(folder, settings, python_path=gate.site)
        gateways.append(served)
        served.start()
        return Stage(pulsar_broker, served.service_url, gate, folder)

    yield make
    codes = [served.stop() for served in gateways]
    assert codes == [0] * len(codes), "a gateway did not end cleanly"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """If the broker is not available, one line of the summary says so, not one for each test."""
    report = yield
    if (
        report.skipped
        and "pulsar_broker" in getattr(item, "fixturenames", ())
        and isinstance(report.longrepr, tuple)
    ):
        report.longrepr = (__file__, 1, report.longrepr[2])
    return report

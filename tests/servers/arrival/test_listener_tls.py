from __future__ import annotations

from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from broker_core.metrics.metrics import Metrics
from broker_core.reloads import Reloads
from broker_core.servers.arrival import CertificateUnusable, tls_entrances
from broker_core.settings import KafkaSettings, KafkaTlsSettings, PulsarSettings, PulsarTlsSettings, Settings
from tests.support.certificates import Authority


async def test_each_listener_with_tls_has_an_entrance(authority: Authority) -> None:
    issued = authority.issue("entrances")
    kafka = KafkaTlsSettings(certificate=issued.certificate, key=issued.key, client_ca=authority.ca)
    settings = Settings(
        pulsar=PulsarSettings(tls=PulsarTlsSettings(certificate=issued.certificate, key=issued.key)),
        kafka=KafkaSettings(tls=kafka),
    )
    reloads = Reloads()
    async with AsyncExitStack() as stack:
        entrances = await tls_entrances(settings, Metrics(), reloads, stack)
        assert set(entrances) == {"pulsar", "kafka"}
        # Nothing may come before the answer to a Kafka client's first request.
        tickets = {name: each.certificate.context.num_tickets for name, each in entrances.items()}
        assert tickets == {"pulsar": 2, "kafka": 0}


async def test_without_tls_there_is_none() -> None:
    async with AsyncExitStack() as stack:
        assert await tls_entrances(Settings(), Metrics(), Reloads(), stack) == {}


async def test_a_file_that_is_not_there_names_its_setting(tmp_path: Path) -> None:
    tls = KafkaTlsSettings(certificate=tmp_path / "no.pem", key=tmp_path / "no.key")
    async with AsyncExitStack() as stack:
        with pytest.raises(CertificateUnusable, match=r"kafka\.tls\.certificate"):
            await tls_entrances(Settings(kafka=KafkaSettings(tls=tls)), Metrics(), Reloads(), stack)

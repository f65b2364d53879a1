"""The authentication of Kafka clients: whether each mechanism can be used, and whether any client has a role."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from broker_core.plugin_api import Check

if TYPE_CHECKING:
    from broker_core.settings import Settings

__all__ = ["kafka_sasl_checks"]

_NAME = "kafka.sasl.mechanisms"


def kafka_sasl_checks(settings: Settings) -> Iterator[Check]:
    """Findings about SASL. If plugins may verify credentials, a mechanism that seems unusable is only a warning."""
    kafka = settings.kafka
    if kafka is None or not (kafka.sasl.mechanisms or settings.authentication.methods):
        return
    from broker_core.servers.kafka import MechanismUnusable, check_mechanisms

    mechanisms, methods = kafka.sasl.mechanisms, settings.authentication.methods
    usable = True
    by_cluster = kafka.upstream is not None and kafka.upstream.forward == "client"
    for mechanism in () if by_cluster else mechanisms:
        try:
            check_mechanisms((mechanism,), methods.__contains__, has_users=settings.upstream is None)
        except MechanismUnusable as error:
            usable = False
            text = str(error).partition(": ")[2]
            by_plugin = bool(settings.plugins.enabled) and not mechanism.startswith("SCRAM")
            yield (Check.warning if by_plugin else Check.error)(_NAME, text)
    certificates = "tls" in methods and kafka.tls is not None and kafka.tls.client_ca is not None
    if mechanisms and usable:
        yield Check.ok(_NAME, ", ".join(mechanisms))
    elif not mechanisms and methods and not certificates:
        yield Check.warning(
            _NAME,
            "Kafka clients are asked for no credentials: they have no role, and no rule allows them anything",
        )

"""The settings of Kafka's listener: configs of topics, replication, and whether mechanisms can be used by anybody."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from broker_core.counted import counted
from broker_core.plugin_api import Check

if TYPE_CHECKING:
    from broker_core.settings import Settings

__all__ = ["kafka_configs_checks", "kafka_replication_checks", "kafka_sasl_checks"]

_MECHANISMS = "kafka.sasl.mechanisms"


def kafka_configs_checks(settings: Settings) -> Iterator[Check]:
    """A finding about the defaults of topic configs."""
    if settings.kafka is None or not settings.kafka.configs:
        return
    from broker_core.kafka.configs import broker_config_faults

    faults = broker_config_faults(settings.kafka.configs)
    yield from (Check.error("kafka.configs", fault) for fault in faults)
    if not faults:
        yield Check.ok("kafka.configs", f"{counted(len(settings.kafka.configs), 'default')} of topic configs")


def kafka_replication_checks(settings: Settings) -> Iterator[Check]:
    """A finding about ``kafka.replication_factor`` beside ``kafka.replication``."""
    kafka = settings.kafka
    if kafka is not None and kafka.replication == "strict" and kafka.replication_factor > 1:
        yield Check.warning(
            "kafka.replication_factor",
            f"topics that clients make without a replication factor are refused (38): {kafka.replication_factor} "
            'replicas need as many nodes, and there is one; write 1, or kafka.replication = "record"',
        )


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
            yield (Check.warning if by_plugin else Check.error)(_MECHANISMS, text)
    certificates = "tls" in methods and kafka.tls is not None and kafka.tls.client_ca is not None
    if mechanisms and usable:
        yield Check.ok(_MECHANISMS, ", ".join(mechanisms))
    elif not mechanisms and methods and not certificates:
        yield Check.warning(
            _MECHANISMS,
            "Kafka clients are asked for no credentials: they have no role, and no rule allows them anything",
        )

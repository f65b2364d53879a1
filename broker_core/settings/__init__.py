"""The settings, from one TOML file, the environment and options: models, layers, and the source of each value."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_core.lazy_exports import lazy_exports
from broker_core.quantities import ListenAddress
from broker_core.settings.access_log_model import AccessLogSettings
from broker_core.settings.advertised_address import is_wildcard
from broker_core.settings.authentication_model import (
    Algorithm,
    AuthenticationSettings,
    BasicSettings,
    Method,
    TokenSettings,
)
from broker_core.settings.authorization_model import AuthorizationRule, AuthorizationSettings, RuleAction
from broker_core.settings.changed_settings import SettingChange, live_settings, merged, setting_changes
from broker_core.settings.environment_layer import CONFIG_VARIABLE
from broker_core.settings.kafka_model import (
    KafkaMechanism,
    KafkaSaslSettings,
    KafkaSettings,
    KafkaTlsSettings,
)
from broker_core.settings.kafka_upstream_model import KafkaUpstreamSaslSettings, KafkaUpstreamSettings
from broker_core.settings.key_source import KeySource
from broker_core.settings.load import (
    LoadedSettings,
    SettingInForce,
    SettingProblem,
    find_admin_socket,
    find_problems,
    load_settings,
    settings_file,
)
from broker_core.settings.models import (
    CatalogSettings,
    HttpSettings,
    LimitsSettings,
    LogSettings,
    PatternsSettings,
    PluginsSettings,
    PulsarSettings,
    Settings,
)
from broker_core.settings.problems import SettingsError
from broker_core.settings.quota_model import QuotaSettings
from broker_core.settings.setting_paths import dotted as dotted  # for other parts of the core
from broker_core.settings.shrink_guard_model import (
    ShrinkGuardNamespace,
    ShrinkGuardSettings,
    ShrinkLimits,
)
from broker_core.settings.tls_models import HttpTlsSettings, PulsarTlsSettings
from broker_core.settings.tracing_model import TracingSettings
from broker_core.settings.upstream_model import (
    UpstreamSettings,
    UpstreamSnapshotsSettings,
    UpstreamTlsSettings,
)
from broker_core.settings.watchers_model import WatchersSettings

if TYPE_CHECKING:
    from broker_core.settings.mask_secrets import MASK, masked

__all__ = [
    "CONFIG_VARIABLE",
    "MASK",
    "AccessLogSettings",
    "Algorithm",
    "AuthenticationSettings",
    "AuthorizationRule",
    "AuthorizationSettings",
    "BasicSettings",
    "CatalogSettings",
    "HttpSettings",
    "HttpTlsSettings",
    "KafkaMechanism",
    "KafkaSaslSettings",
    "KafkaSettings",
    "KafkaTlsSettings",
    "KafkaUpstreamSaslSettings",
    "KafkaUpstreamSettings",
    "KeySource",
    "LimitsSettings",
    "ListenAddress",
    "LoadedSettings",
    "LogSettings",
    "Method",
    "PatternsSettings",
    "PluginsSettings",
    "PulsarSettings",
    "PulsarTlsSettings",
    "QuotaSettings",
    "RuleAction",
    "SettingChange",
    "SettingInForce",
    "SettingProblem",
    "Settings",
    "SettingsError",
    "ShrinkGuardNamespace",
    "ShrinkGuardSettings",
    "ShrinkLimits",
    "TokenSettings",
    "TracingSettings",
    "UpstreamSettings",
    "UpstreamSnapshotsSettings",
    "UpstreamTlsSettings",
    "WatchersSettings",
    "find_admin_socket",
    "find_problems",
    "is_wildcard",
    "live_settings",
    "load_settings",
    "masked",
    "merged",
    "setting_changes",
    "settings_file",
]

# The module that hides secrets compiles many expressions, and only commands that print settings need it.
__getattr__ = lazy_exports(__name__, dict.fromkeys(("MASK", "masked"), ".mask_secrets"))

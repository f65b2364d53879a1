"""Reloads: settings that take effect in a running server, by a signal or when files change."""

from broker_core.reloads.live_settings import LiveSettings, SettingsDifference
from broker_core.reloads.sighup_reloads import Reloads
from broker_core.reloads.watched_files import WatchedFiles

__all__ = ["LiveSettings", "Reloads", "SettingsDifference", "WatchedFiles"]

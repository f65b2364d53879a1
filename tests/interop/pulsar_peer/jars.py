"""The jars of the real Pulsar broker, of its official Java client and of pulsar-admin."""

from __future__ import annotations

from pathlib import Path

from tests.interop.maven import jars_of

__all__ = ["HERE", "admin_tool_jars", "peer_jars"]

HERE = Path(__file__).resolve().parent


def peer_jars() -> Path:
    """The folder of the jars of broker and client."""
    return jars_of(HERE / "pom.xml")


def admin_tool_jars() -> Path:
    """The jars of the tool pulsar-admin: its version is another one, so it has a folder of its own."""
    return jars_of(HERE / "pulsar_admin_pom.xml")

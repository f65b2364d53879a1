"""Fixtures for tests of plugins; pytest finds this module by its entry point wherever broker-core is installed.

Nothing of the server is imported before a fixture is used: every run of pytest in the environment loads this module.
"""

from __future__ import annotations

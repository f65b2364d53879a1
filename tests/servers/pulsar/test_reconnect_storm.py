"""Many clients come back at once, beside others that hold handshakes up: all get in."""

from __future__ import annotations

from pathlib import Path

from tests.benchmarks.reconnects import Reconnects, run_reconnects


def test_all_get_in(tmp_path: Path) -> None:
    wanted = Reconnects(plain=300, tls=60, silent=90, slow=30, halves=30)
    result = run_reconnects(wanted, tmp_path / "storm")
    assert result["outcomes"] == {"plain": 300, "tls": 60}
    assert result["pings"] > 0

"""`python -m broker_core.cli` is `broker-core`."""

from __future__ import annotations

from broker_core.cli import main

if __name__ == "__main__":
    main()

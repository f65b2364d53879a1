"""Importing the package of names imports nothing large."""

from __future__ import annotations

import subprocess
import sys


def test_parsing_a_name_imports_neither_arrow_nor_re2() -> None:
    code = (
        "import sys; from broker_core.names import TopicName; TopicName.parse('persistent://t/n/a')\n"
        "print([name for name in ('pyarrow', 'numpy', 're2', 'pydantic') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"

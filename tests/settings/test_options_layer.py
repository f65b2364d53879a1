"""Settings from options of the command line."""

from __future__ import annotations

from broker_core.settings.options_layer import options_layer


def test_options_are_labelled_by_their_name() -> None:
    layer = options_layer(
        {"--pulsar": (("pulsar", "listen"), "127.0.0.1:0"), "--catalog": (("catalog", "path"), None)}
    )
    assert layer.values == {"pulsar": {"listen": "127.0.0.1:0"}}
    assert layer.label(("pulsar", "listen")) == "--pulsar"

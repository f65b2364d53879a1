"""Settings from environment variables."""

from __future__ import annotations

import pytest

from broker_core.settings.environment_layer import environment_layer, variable_name
from broker_core.settings.problems import SettingsError


def test_variables_are_table_and_key() -> None:
    layer = environment_layer(
        {
            "BROKER_CORE_PULSAR__LISTEN": "[::1]:0",
            "BROKER_CORE_LIMITS_PERMIT_QUEUE": "7",
            "BROKER_CORE_PATTERNS_MAX_LENGTH": "1",
            "BROKER_CORE_PATTERNS__MAX_LENGTH": "2",
            "PATH": "x",
        }
    )
    assert layer.values == {
        "pulsar": {"listen": "[::1]:0"},
        "limits": {"permit_queue": "7"},
        "patterns": {"max_length": "2"},
    }
    assert layer.label(("pulsar", "listen")) == "BROKER_CORE_PULSAR__LISTEN"
    assert layer.label(("limits", "permit_queue")) == "BROKER_CORE_LIMITS_PERMIT_QUEUE"
    assert layer.label(("http", "listen")) == "BROKER_CORE_HTTP__LISTEN"


def test_variables_of_others_are_left_alone() -> None:
    """As a Kubernetes service named broker-core puts them into every pod."""
    layer = environment_layer(
        {
            "BROKER_CORE_SERVICE_HOST": "10.0.0.1",
            "BROKER_CORE_PORT_6650_TCP_ADDR": "10.0.0.1",
            "BROKER_CORE_CONFIG": "x.toml",
            "_BROKER_CORE_COMPLETE": "complete_bash",
        }
    )
    assert layer.values == {}


def test_lists_are_json_or_separated_by_commas() -> None:
    layer = environment_layer(
        {"BROKER_CORE_PLUGINS__ENABLED": "a, b,", "BROKER_CORE_CATALOG__PROPERTY_KEYS": '["x,y", "z"]'}
    )
    assert layer.values == {"plugins": {"enabled": ["a", "b"]}, "catalog": {"property_keys": ["x,y", "z"]}}
    assert environment_layer({"BROKER_CORE_PLUGINS__ENABLED": ""}).values == {"plugins": {"enabled": []}}
    with pytest.raises(SettingsError, match=r"BROKER_CORE_PLUGINS__ENABLED: .* is not a JSON list"):
        environment_layer({"BROKER_CORE_PLUGINS__ENABLED": "[a"})
    with pytest.raises(SettingsError, match="BROKER_CORE_PLUGINS__P__T: the key 'a' is there twice"):
        environment_layer({"BROKER_CORE_PLUGINS__P__T": '{"a": 1, "a": 2}'})


def test_the_name_of_a_plugin_is_found_again() -> None:
    variables = {
        "BROKER_CORE_PLUGINS__TENANT_FILTER__DEADLINE": "2s",
        "BROKER_CORE_PLUGINS__MY_SQL__HOSTS": '["a", "b"]',
        "BROKER_CORE_PLUGINS__MY_SQL__POOL__SIZE": "3",
        "BROKER_CORE_PLUGINS__MY_SQL__NOTE": "[not json",
        "BROKER_CORE_PLUGINS__NOBODY_KNOWS__X": "1",
        "BROKER_CORE_PLUGINS__ENABLED": "tenant-filter",
    }
    assert environment_layer(variables, ["my_SQL"]).values["plugins"] == {
        "enabled": ["tenant-filter"],
        "tenant-filter": {"deadline": "2s"},
        "my_SQL": {"hosts": ["a", "b"], "pool": {"size": "3"}, "note": "[not json"},
        "nobody-knows": {"x": "1"},
    }


def test_a_value_is_no_table() -> None:
    with pytest.raises(SettingsError, match="BROKER_CORE_PULSAR__LISTEN__HOST"):
        environment_layer({"BROKER_CORE_PULSAR__LISTEN": "x", "BROKER_CORE_PULSAR__LISTEN__HOST": "y"})


def test_the_variable_of_a_setting() -> None:
    assert (
        variable_name(("plugins", "tenant-filter", "api.key"))
        == "BROKER_CORE_PLUGINS__TENANT_FILTER__API_KEY"
    )


def test_an_unknown_variable_gets_the_nearest() -> None:
    variable = environment_layer({"BROKER_CORE_PULSR__LISTEN": "x"})
    assert variable.unknown(("pulsr",)) == (
        "BROKER_CORE_PULSR__LISTEN: unknown setting 'pulsr.listen', did you mean BROKER_CORE_PULSAR__LISTEN?"
    )

from __future__ import annotations

from pathlib import Path

import pytest

from broker_core.settings.layers import EnvironmentLayer, FileLayer, OptionsLayer, variable_name
from broker_core.settings.problems import SettingsError


def _file(folder: Path, text: str) -> Path:
    file = folder / "broker-core.toml"
    file.write_text(text, encoding="utf-8")
    return file


def test_a_file_is_toml(tmp_path: Path) -> None:
    layer = FileLayer(_file(tmp_path, '[pulsar]\nlisten = "127.0.0.1:0"\n'))
    assert layer.values == {"pulsar": {"listen": "127.0.0.1:0"}}
    assert layer.label(("pulsar", "listen")) == f"{tmp_path / 'broker-core.toml'}: pulsar.listen"


@pytest.mark.parametrize(
    ("content", "said"),
    [(b"a = ", "not valid TOML"), (b'a = "\xff"', "not valid TOML"), (b"[a]\n[a]", "not valid TOML")],
)
def test_a_file_that_is_no_toml_is_named(tmp_path: Path, content: bytes, said: str) -> None:
    file = tmp_path / "broken.toml"
    file.write_bytes(content)
    with pytest.raises(SettingsError) as caught:
        FileLayer(file)
    assert str(caught.value).startswith(f"{file}: {said}")


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"absent\.toml: cannot read the settings file: No such file"):
        FileLayer(tmp_path / "absent.toml")
    with pytest.raises(SettingsError, match="Is a directory"):
        FileLayer(tmp_path)


def test_the_catalogue_of_a_file_is_beside_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "etc").mkdir()
    file = _file(tmp_path / "etc", '[catalog]\npath = "topics.sqlite"\n')
    monkeypatch.chdir(tmp_path)
    assert FileLayer(file).values["catalog"]["path"] == tmp_path / "etc" / "topics.sqlite"
    assert FileLayer(Path("etc") / file.name).values["catalog"]["path"] == tmp_path / "etc" / "topics.sqlite"
    absolute = FileLayer(_file(tmp_path, '[catalog]\npath = "/var/lib/t.sqlite"\n'))
    assert absolute.values["catalog"]["path"] == Path("/var/lib/t.sqlite")


def test_the_log_of_a_file_is_beside_it(tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()
    assert FileLayer(_file(tmp_path / "etc", '[log]\nfile = "a.log"\n')).values["log"]["file"] == (
        tmp_path / "etc" / "a.log"
    )
    assert FileLayer(_file(tmp_path, '[log]\nfile = ""\n')).values["log"]["file"] == ""


def test_variables_are_table_and_key() -> None:
    layer = EnvironmentLayer(
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
    layer = EnvironmentLayer(
        {
            "BROKER_CORE_SERVICE_HOST": "10.0.0.1",
            "BROKER_CORE_PORT_6650_TCP_ADDR": "10.0.0.1",
            "BROKER_CORE_CONFIG": "x.toml",
            "_BROKER_CORE_COMPLETE": "complete_bash",
        }
    )
    assert layer.values == {}


def test_lists_are_json_or_separated_by_commas() -> None:
    layer = EnvironmentLayer(
        {"BROKER_CORE_PLUGINS__ENABLED": "a, b,", "BROKER_CORE_CATALOG__PROPERTY_KEYS": '["x,y", "z"]'}
    )
    assert layer.values == {"plugins": {"enabled": ["a", "b"]}, "catalog": {"property_keys": ["x,y", "z"]}}
    assert EnvironmentLayer({"BROKER_CORE_PLUGINS__ENABLED": ""}).values == {"plugins": {"enabled": []}}
    with pytest.raises(SettingsError, match=r"BROKER_CORE_PLUGINS__ENABLED: .* is not a JSON list"):
        EnvironmentLayer({"BROKER_CORE_PLUGINS__ENABLED": "[a"})


def test_the_name_of_a_plugin_is_found_again() -> None:
    variables = {
        "BROKER_CORE_PLUGINS__TENANT_FILTER__DEADLINE": "2s",
        "BROKER_CORE_PLUGINS__MY_SQL__HOSTS": '["a", "b"]',
        "BROKER_CORE_PLUGINS__MY_SQL__POOL__SIZE": "3",
        "BROKER_CORE_PLUGINS__MY_SQL__NOTE": "[not json",
        "BROKER_CORE_PLUGINS__NOBODY_KNOWS__X": "1",
        "BROKER_CORE_PLUGINS__ENABLED": "tenant-filter",
    }
    assert EnvironmentLayer(variables, ["my_SQL"]).values["plugins"] == {
        "enabled": ["tenant-filter"],
        "tenant-filter": {"deadline": "2s"},
        "my_SQL": {"hosts": ["a", "b"], "pool": {"size": "3"}, "note": "[not json"},
        "nobody-knows": {"x": "1"},
    }


def test_a_value_is_no_table() -> None:
    with pytest.raises(SettingsError, match="BROKER_CORE_PULSAR__LISTEN__HOST"):
        EnvironmentLayer({"BROKER_CORE_PULSAR__LISTEN": "x", "BROKER_CORE_PULSAR__LISTEN__HOST": "y"})


def test_the_catalogue_of_a_variable_or_an_option_is_in_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    variable = EnvironmentLayer({"BROKER_CORE_CATALOG__PATH": "t.sqlite"})
    option = OptionsLayer({"--catalog": (("catalog", "path"), Path("t.sqlite"))})
    assert variable.values["catalog"]["path"] == option.values["catalog"]["path"] == tmp_path / "t.sqlite"


def test_options_are_labelled_by_their_name() -> None:
    layer = OptionsLayer(
        {"--pulsar": (("pulsar", "listen"), "127.0.0.1:0"), "--catalog": (("catalog", "path"), None)}
    )
    assert layer.values == {"pulsar": {"listen": "127.0.0.1:0"}}
    assert layer.label(("pulsar", "listen")) == "--pulsar"


def test_an_unknown_setting_gets_the_nearest(tmp_path: Path) -> None:
    file = FileLayer(_file(tmp_path, ""))
    assert file.unknown(("pulsar", "lisen")).endswith(
        "broker-core.toml: unknown key 'pulsar.lisen', did you mean 'pulsar.listen'?"
    )
    variable = EnvironmentLayer({"BROKER_CORE_PULSR__LISTEN": "x"})
    assert variable.unknown(("pulsr",)) == (
        "BROKER_CORE_PULSR__LISTEN: unknown setting 'pulsr.listen', did you mean BROKER_CORE_PULSAR__LISTEN?"
    )


def test_the_variable_of_a_setting() -> None:
    assert (
        variable_name(("plugins", "tenant-filter", "api.key"))
        == "BROKER_CORE_PLUGINS__TENANT_FILTER__API_KEY"
    )

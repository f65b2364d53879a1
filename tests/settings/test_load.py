from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from broker_core.settings import (
    PluginsSettings,
    Settings,
    SettingsError,
    dotted,
    find_problems,
    load_settings,
)
from tests.support.files import file_with
from tests.support.narrowed import of_type, present

WriteFile = Callable[[str], Path]


@pytest.fixture
def toml(tmp_path: Path) -> WriteFile:
    def write(text: str) -> Path:
        return file_with(tmp_path / "broker-core.toml", text)

    return write


EVERYTHING = """
[pulsar]
listen = "127.0.0.1:6650"           # port 0: a free one
advertised = ""
max_message_size = 5242880
advertise_frame = "same"
max_listing = "256MB"
keep_alive = "30s"
write_timeout = "15s"               # a peer that stops reading
min_write_rate = "256KB"            # bytes a second
drain_delay = "0s"
drain_timeout = "10s"               # on SIGTERM
haproxy_from = ["10.0.0.0/8", "2001:db8::7"]
[pulsar.tls]
listen = "127.0.0.1:6651"
advertised = "lookups.example.com"
certificate = "server.pem"
key = "server.key"
client_ca = "clients.pem"
[authorization]
mode = "rules"
super_roles = ["admin"]
[[authorization.rules]]
roles = ["team-*"]
namespaces = ["acme/*"]
actions = ["list", "lookup"]
[authentication]
methods = ["token", "basic"]
anonymous_role = "guest"
proxy_roles = ["proxy"]
[authentication.token]
key = "file:public.der"
jwks = ""
algorithms = ["RS256", "RS512"]
subject_claim = "sub"
audience = "pulsar"
issuer = ""
leeway = "5s"
[authentication.basic]
file = "htpasswd"
[http]
hosts = ["topics.acme.example"]
haproxy_from = ["10.0.0.0/8"]
listen = "127.0.0.1:8080"           # /metrics, /-/live, /-/ready; more later
questions = true
protect = true
connections = 100
api = true
writes = false
most_items = 1000
[admin]
socket = "/run/broker-core/admin"
[catalog]
path = "broker-core.sqlite"
property_keys = ["region", "team"]
mode = "0600"
snapshots = "folder"                # beside the file; "off": none
snapshots_bytes = "2GB"
warm_within = "5s"
[upstream]
service_url = "pulsar+ssl://127.0.0.1:6651"
forward = "gateway"
token = "file:gateway.token"
token_command = []
original_auth_data = false
ready = true
admin_url = "https://127.0.0.1:8443"
listing_depends_on = ["properties"]
[upstream.snapshots]
mode = "auto"
max_age = "60s"
token = "file:lister.token"
token_command = []
folder = "listings"
folder_bytes = "2GB"
[upstream.tls]
ca = "brokers.pem"
certificate = "gateway.pem"
key = "gateway.key"
verify_hostname = true
[patterns]
evaluate = true                     # false: always unfiltered, as with Pulsar's switch
max_length = 1024
unsupported = "unfiltered"
[limits]
connections = "auto"
connections_per_address = 0
heap_permits = "100MB"
direct_permits = "100MB"
snapshots = "512MB"
permit_timeout = "25s"
permit_queue = 1000
concurrent_lookups = 50000
properties = 64
property_bytes = 16384
[shrink_guard]
enabled = true
max_ratio = 0.5
min_topics = 10
hold = "1h"
file = "shrink-guard.txt"
[[shrink_guard.namespaces]]
name = "acme/*"
enabled = false
[[quotas]]
name = "batch"
requests = 10
[watchers]
enabled = true
interval = "30s"
most = 100000
[plugins]
enabled = ["tenant-filter"]
[plugins.tenant-filter]
deadline = "2s"
on_failure = "error"
[log]
level = "debug"
format = "json"
file = "broker-core.log"
"""


def test_nothing_is_the_defaults() -> None:
    loaded = load_settings(environment={})
    assert loaded.settings == Settings()
    assert type(loaded.settings) is Settings
    assert {setting.origin for setting in loaded.in_force()} == {"default"}


def test_every_key_of_the_file_is_known(toml: WriteFile) -> None:
    loaded = load_settings(toml(EVERYTHING), environment={})
    settings = loaded.settings
    assert present(settings.http).listen.port == 8080
    assert settings.upstream is not None
    assert settings.catalog.property_keys == ("region", "team")
    assert of_type(settings.plugins, PluginsSettings).table("tenant-filter") == {
        "deadline": "2s",
        "on_failure": "error",
    }
    assert {setting.origin for setting in loaded.in_force()} == {"file"}
    assert Settings.model_validate(settings.model_dump(mode="json")) == settings


def test_defaults_file_environment_options(toml: WriteFile) -> None:
    loaded = load_settings(
        toml('[pulsar]\nlisten = "127.0.0.1:1"\nkeep_alive = 11\nwrite_timeout = "12s"\n'),
        environment={
            "BROKER_CORE_PULSAR__LISTEN": "127.0.0.1:2",
            "BROKER_CORE_PULSAR__KEEP_ALIVE": "13s",
            "BROKER_CORE_HTTP__LISTEN": "127.0.0.1:4",
        },
        options={"--pulsar": (("pulsar", "listen"), "127.0.0.1:3"), "--catalog": (("catalog", "path"), None)},
    )
    pulsar = loaded.settings.pulsar
    assert (pulsar.listen.port, pulsar.keep_alive, pulsar.write_timeout, pulsar.drain_timeout) == (
        3,
        13,
        12,
        10,
    )
    assert loaded.settings.http is not None
    origins = {".".join(setting.path): (setting.origin, setting.source) for setting in loaded.in_force()}
    assert origins["pulsar.listen"] == ("option", "--pulsar")
    assert origins["pulsar.keep_alive"] == ("env", "BROKER_CORE_PULSAR__KEEP_ALIVE")
    assert origins["pulsar.write_timeout"] == ("file", str(loaded.file))
    assert origins["pulsar.drain_timeout"] == ("default", "")
    assert origins["http.listen"] == ("env", "BROKER_CORE_HTTP__LISTEN")


def test_layers_merge_inside_of_the_table_of_a_plugin(toml: WriteFile) -> None:
    loaded = load_settings(
        toml(
            '[plugins]\nenabled = ["my.plugin"]\n[plugins."my.plugin"]\ndeadline = "2s"\npool = {min = 1, max = 2}\n'
        ),
        environment={
            "BROKER_CORE_PLUGINS__MY_PLUGIN__DEADLINE": "1s",
            "BROKER_CORE_PLUGINS__MY_PLUGIN__POOL__MAX": "9",
        },
    )
    assert loaded.settings.plugins.table("my.plugin") == {"deadline": "1s", "pool": {"min": 1, "max": "9"}}
    values = {
        setting.path[2:]: setting.origin
        for setting in loaded.in_force()
        if setting.path[1:2] == ("my.plugin",)
    }
    assert values == {("deadline",): "env", ("pool", "min"): "file", ("pool", "max"): "env"}


def test_the_file_can_be_named_by_the_environment(toml: WriteFile) -> None:
    file = toml('[log]\nlevel = "debug"\n')
    assert load_settings(environment={"BROKER_CORE_CONFIG": str(file)}).settings.log.level == "debug"
    assert load_settings(environment={"BROKER_CORE_CONFIG": ""}).file is None


def test_http_and_upstream_are_off_without_their_tables(toml: WriteFile) -> None:
    settings = load_settings(toml("[pulsar]\n"), environment={}).settings
    assert settings.http is None
    assert settings.upstream is None
    with_http = load_settings(toml("[http]\n"), environment={}).settings
    assert str(present(with_http.http).listen) == "127.0.0.1:8080"


def test_the_default_catalogue_is_beside_the_file(
    toml: WriteFile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = toml("")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert load_settings(file, environment={}).settings.catalog.path == tmp_path / "broker-core.sqlite"
    assert load_settings(environment={}).settings.catalog.path == Path("broker-core.sqlite")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[pulsr]\nx = 1", "unknown key 'pulsr', did you mean 'pulsar'?"),
        ("[pulsar]\nlisen = 'x'", "unknown key 'pulsar.lisen', did you mean 'pulsar.listen'?"),
        (
            "[catalog]\nproperties = []",
            "unknown key 'catalog.properties', did you mean 'catalog.property_keys'?",
        ),
        ("pulsar = 3", "pulsar: 3 is not a table of settings"),
        ("[pulsar]\nlisten = 3", "pulsar.listen: 3 is not HOST:PORT"),
        ("[plugins]\nenabled = 3", "plugins.enabled: 3: input should be a list"),
        ("[plugins]\nfoo = 3", "unknown key 'plugins.foo'"),
        ("[upstream]", "upstream.service_url: it must be set"),
        ("[limits]\nheap_permits = 'x'\npermit_queue = 0", "(and 1 more)"),
        ("[pulsar]\nkeep_alive = 'soon'", "pulsar.keep_alive: 'soon' is not a duration"),
    ],
)
def test_what_is_wrong_in_the_file_is_one_line_that_names_it(toml: WriteFile, text: str, said: str) -> None:
    file = toml(text)
    with pytest.raises(SettingsError) as caught:
        load_settings(file, environment={})
    assert str(caught.value).startswith(f"{file}: ")
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("variable", "value", "said"),
    [
        ("BROKER_CORE_PULSAR__LISEN", "x", "did you mean BROKER_CORE_PULSAR__LISTEN?"),
        ("BROKER_CORE_PULSAR__LISTEN", "x", "'x' is not HOST:PORT"),
        ("BROKER_CORE_FOO__BAR", "x", "unknown setting 'foo.bar'"),
        ("BROKER_CORE_PLUGINS__ENABLED", "a,a", "'a' is named twice"),
        ("BROKER_CORE_PATTERNS__EVALUATE", "perhaps", "'perhaps': input should be a valid boolean"),
    ],
)
def test_what_is_wrong_in_the_environment_names_the_variable(variable: str, value: str, said: str) -> None:
    with pytest.raises(SettingsError) as caught:
        load_settings(environment={variable: value})
    assert str(caught.value).startswith(f"{variable}: ")
    assert said in str(caught.value)


def test_what_is_wrong_in_an_option_names_the_option() -> None:
    with pytest.raises(SettingsError, match=r"^--pulsar: 'x' is not HOST:PORT"):
        load_settings(environment={}, options={"--pulsar": (("pulsar", "listen"), "x")})


def test_all_problems_are_found_and_the_rest_is_there(toml: WriteFile) -> None:
    file = toml(
        '[pulsar]\nlisten = "127.0.0.1:7"\nkeep_alive = "fast"\nwrong = 1\n[limits]\nproperties = -1\n'
        '[upstream]\nservice_url = "http://x"\n[nowhere]\nx = 1\n[plugins]\nextra = 3\n'
    )
    environment = {"BROKER_CORE_LIMITS__PERMIT_QUEUE": "many", "BROKER_CORE_LOG__COLOUR": "x"}
    loaded, problems = find_problems(file, environment=environment)
    assert loaded is not None
    assert loaded.settings.pulsar.listen.port == 7
    assert loaded.settings.pulsar.keep_alive == 30
    assert loaded.settings.upstream is None
    named = ["pulsar.wrong", "nowhere", "plugins.extra", "pulsar.keep_alive", "limits.properties"]
    named += ["upstream.service_url", "BROKER_CORE_LIMITS__PERMIT_QUEUE", "BROKER_CORE_LOG__COLOUR"]
    assert len(problems) == len(named)
    assert all(any(name in problem.text for problem in problems) for name in named), problems
    assert {("pulsar", "keep_alive"), ("pulsar", "wrong")} <= {problem.path for problem in problems}


def test_a_file_that_cannot_be_read_is_one_problem(toml: WriteFile) -> None:
    loaded, (problem,) = find_problems(toml("[pulsar"), environment={})
    assert loaded is None
    assert "not valid TOML" in problem.text
    assert problem.path == ()


def test_where_nothing_is_wrong_it_is_what_is_loaded(toml: WriteFile) -> None:
    file = toml(EVERYTHING)
    loaded, problems = find_problems(file, environment={})
    assert problems == []
    assert present(loaded).settings == load_settings(file, environment={}).settings


@pytest.mark.parametrize(
    ("text", "named"),
    [
        (
            '[authentication.token]\nkey = "file:a"\nalgorithms = ["RS265"]',
            {"authentication.token.algorithms"},
        ),
        ('[authentication.token]\nkey = "wrong"', {"authentication.token.key"}),
        ('[authentication.token]\nkye = "file:a"', {"authentication.token.kye"}),
        ("", {"authentication.methods"}),
        (
            '[authentication.token]\nkey = "wrong"\n[upstream]\nservice_url = "pulsar://a:1"\nforward = "client"',
            {"authentication.token.key"},
        ),
        (
            """
            [authentication.token]
            key = "file:a"
            [log]
            level = "loud"
            [upstream]
            service_url = "pulsar://a:1"
            token = "a b"
            original_auth_data = true
            """,
            {"upstream.token", "log.level"},
        ),
    ],
)
def test_nothing_follows_from_what_is_left_out(toml: WriteFile, text: str, named: set[str]) -> None:
    file = toml(f'[authentication]\nmethods = ["token"]\n[http]\nprotect = true\n{text}\n')
    loaded, problems = find_problems(file, environment={})
    assert loaded is not None
    assert {dotted(problem.path) for problem in problems} == named
    assert len(problems) == len(named)


def test_a_conflict_of_other_tables_is_still_found(toml: WriteFile) -> None:
    _, problems = find_problems(toml('[http]\nprotect = true\n[log]\nlevel = "loud"\n'), environment={})
    assert {dotted(problem.path) for problem in problems} == {"http.protect", "log.level"}


def test_what_is_wrong_in_one_layer_leaves_the_others(toml: WriteFile) -> None:
    file = toml('[pulsar]\nlisten = "127.0.0.1:7000"\n')
    loaded, (problem,) = find_problems(file, environment={"BROKER_CORE_PULSAR__KEEP_ALIVE": "long"})
    assert loaded is not None
    assert "BROKER_CORE_PULSAR__KEEP_ALIVE" in problem.text
    assert loaded.settings.pulsar.listen.port == 7000

"""`broker-core reload`: by the operator's socket; and what `check` says of a server that runs."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from broker_core import hookimpl
from broker_core.broker import Broker
from broker_core.cli.commands.operate.reload import _lines
from broker_core.settings import Settings, load_settings
from tests.cli.conftest import Cli, Said
from tests.support.catalogue_topics import create_topics
from tests.support.files import file_with


def _said(said: Said) -> str:
    """What it printed and what went wrong, without the log of the server, which is in this process."""
    lines = (said.out + said.err).splitlines(True)
    return "".join(line for line in lines if not line.startswith("20"))


async def test_reload_and_check(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "f.toml"

    def write(rest: str) -> None:
        file.write_text(f'[pulsar]\nlisten = "127.0.0.1:0"\n[admin]\nsocket = "a.sock"\n{rest}')

    def load() -> Settings:
        return load_settings(file, environment={}).settings

    async def asked(*words: str) -> tuple[int, str]:
        said = await asyncio.to_thread(cli, *words, "--config", str(file))
        return said.code, _said(said)

    write("")
    async with Broker(load(), load=load) as broker:
        assert await asked("reload") == (0, "reloaded: settings\nthe settings are as the server has them\n")
        write("[limits]\npermit_queue = 5\n[watchers]\nmost = 5\n")
        changes = "limits.permit_queue: 1000 -> 5\nneeds a restart: watchers.most: 100000 -> 5\n"
        assert await asked("reload", "--dry-run") == (0, f"would change: {changes}")
        assert broker.settings.limits.permit_queue == 1000
        _, checked = await asked("check")
        assert "not in force yet, run broker-core reload: limits.permit_queue" in checked
        code, text = await asked("reload", "--format", "json")
        assert (code, json.loads(text)["changed"][0]["after"]) == (0, 5)
        _, checked = await asked("check")
        assert "in force after a restart of the server: watchers.most" in checked
        write('[authentication]\nmethods = ["token"]\n[authentication.token]\nkey = "file:none"\n')
        code, text = await asked("reload")
        assert code == 1
        assert text.startswith("broker-core: settings: authentication.token.key")
        assert broker.settings.authentication.methods == ()
        _, checked = await asked("check")
        assert "the server that runs goes on with what it had: settings: authentication" in checked
        write("")
        assert (await asked("reload"))[0] == 0
        assert " reload: " not in (await asked("check"))[1]


async def test_a_dry_run_says_how_many_names_a_role_loses(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "f.toml"
    create_topics(tmp_path / "c.sqlite", *(f"persistent://a/b/t{number}" for number in range(10)))

    def write(topics: str, super_roles: str = '["boss"]', catalog: str = "c", behind: str = "") -> None:
        file.write_text(
            f'[pulsar]\nlisten = "127.0.0.1:0"\n[admin]\nsocket = "a.sock"\n[catalog]\npath = "{catalog}.sqlite"\n'
            f"[authorization]\nsuper_roles = {super_roles}\n"
            f'[[authorization.rules]]\nroles = ["team"]\nnamespaces = ["a/b"]\nactions = ["list"]\n{topics}{behind}'
        )

    def load() -> Settings:
        return load_settings(file, environment={}).settings

    write("")
    async with Broker(load(), load=load):
        # Of the topics that the server has, whatever the file says of them after a restart.
        for catalog, behind in (
            ("c", ""),
            ("none", ""),
            ("c", '[upstream]\nservice_url = "pulsar://127.0.0.1:1"'),
        ):
            write('topics = ["t1", "t2", "t3"]\n', "[]", catalog, behind)
            said = await asyncio.to_thread(cli, "reload", "--dry-run", "--config", str(file))
            assert said.code == 0
            assert "would change: authorization.rules: " in said.out
            assert "would not be seen any more by team: 7 of 10 in a/b\n" in said.out
            assert (
                "would not be seen any more by boss: 10 of 10 in a/b (denied: AuthorizationError)\n"
                in said.out
            )
            assert "counted" not in said.out
        (tmp_path / "c.sqlite").rename(tmp_path / "gone.sqlite")
        said = await asyncio.to_thread(cli, "reload", "--dry-run", "--config", str(file))
        assert (
            f"not all names that roles lose are counted: {tmp_path}/c.sqlite: there is no catalogue\n"
            in said.out
        )


async def test_a_dry_run_says_that_names_of_a_cluster_are_not_counted(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "f.toml"
    behind = '[pulsar]\nlisten = "127.0.0.1:0"\n[admin]\nsocket = "a.sock"\n'
    behind += '[upstream]\nservice_url = "pulsar://127.0.0.1:1"\n[authorization]\nsuper_roles = ["boss"]\n'

    def load() -> Settings:
        return load_settings(file, environment={}).settings

    file.write_text(behind)

    class Lists:
        @hookimpl
        def broker_core_list_topics(self) -> None: ...

    async with Broker(load(), load=load, plugins={"p": Lists()}):
        for roles, count in (("boss", 0), ("other", 1)):
            file.write_text(behind.replace("boss", roles))
            said = await asyncio.to_thread(cli, "reload", "--dry-run", "--config", str(file))
            assert said.code == 0
            text = ": not those of plugin 'p', not those of the cluster behind the server\n"
            assert said.out.count(f"not all names that roles lose are counted{text}") == count


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ("[limits]\npermit_queue = \n", "not valid TOML"),
        ("[limits]\npermit_queue = -1\n", "limits.permit_queue"),
        ("[limit]\n", "unknown key 'limit'"),
    ],
)
async def test_a_wrong_file_is_reported_to_the_server_and_by_it(
    cli: Cli, tmp_path: Path, wrong: str, why: str
) -> None:
    file = tmp_path / "f.toml"
    right = '[pulsar]\nlisten = "127.0.0.1:0"\n[admin]\nsocket = "a.sock"\n'

    def load() -> Settings:
        return load_settings(file, environment={}, again=True).settings

    async def asked(*words: str) -> tuple[int, str]:
        said = await asyncio.to_thread(cli, *words, "--config", str(file))
        return said.code, said.out + said.err

    file.write_text(right)
    async with Broker(load(), load=load) as broker:
        opened: list[bool] = []
        broker.reloads.add("log file", lambda: opened.append(True))
        in_force = broker.settings
        file.write_text(right + wrong)
        for words in (["reload", "--dry-run"], ["reload"], ["reload", "--format", "json"]):
            code, text = await asked(*words)
            assert code == 1
            assert why in text
            assert "settings" in text
        assert broker.settings is in_force
        assert (opened, broker.reloads.failing["settings"]) == ([True, True], True)
        code, text = await asked("check")
        assert code == 1
        assert "error reload: the server that runs goes on with what it had: settings: " in text
        # What is wrong for the command alone is not the server's failure, and is reported all the same.
        other = file_with(tmp_path / "other.toml", right + wrong)
        file.write_text(right)
        said = await asyncio.to_thread(cli, "reload", "--config", str(other))
        assert (said.code, why in said.err) == (1, True)
        assert "reloaded: settings" in said.out


@pytest.mark.parametrize("options", [[], ["--dry-run"]])
async def test_another_file_than_that_of_the_server_is_refused(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: list[str]
) -> None:
    file, other, same = (tmp_path / name for name in ("f.toml", "other.toml", "same.toml"))
    right = '[pulsar]\nlisten = "127.0.0.1:0"\n[admin]\nsocket = "a.sock"\n'
    file.write_text(right)
    other.write_text(f"{right}[limits]\npermit_queue = 5\n")
    same.hardlink_to(file)

    def load() -> Settings:
        return load_settings(file, environment={}).settings

    async def asked(*words: str) -> tuple[int, str]:
        said = await asyncio.to_thread(cli, "reload", *options, *words)
        return said.code, _said(said)

    async with Broker(load(), load=load) as broker:
        broker.live.file = str(file)
        opened: list[bool] = []
        broker.reloads.add("log file", lambda: opened.append(True))
        refused = f"broker-core: settings: the server reads {file}, and not {other}: nothing is read again\n"
        assert await asked("--config", str(other)) == (1, refused)
        monkeypatch.setenv("BROKER_CORE_CONFIG", str(other))
        assert await asked() == (1, refused)
        assert not opened
        checked = await asyncio.to_thread(cli, "check", "--config", str(other))
        assert (
            f"warning reload: the running server has other settings: the server reads {file}, and not {other}\n"
            in checked.out
        )
        assert "not in force yet" not in checked.out
        (tmp_path / "link.toml").symlink_to(file)
        for name in ("link.toml", "same.toml", "f.toml"):
            code, text = await asked("--config", str(tmp_path / name))
            assert (code, "the settings are as the server has them" in text) == (0, True)
        broker.live.file = ""
        code, text = await asked()
        assert (code, f"without a settings file, and not {other}" in text) == (1, True)


@pytest.mark.parametrize("wrong", ["missing", "folder", "bytes", "lines", "dotted"])
async def test_a_file_that_cannot_be_read_is_reported_to_the_server(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wrong: str
) -> None:
    file = tmp_path / "f.toml"
    right = '[pulsar]\nlisten = "127.0.0.1:0"\n[admin]\nsocket = "a.sock"\n'
    file.write_text(right)

    def load() -> Settings:
        return load_settings(file, environment={}, again=True).settings

    async with Broker(load(), load=load) as broker:
        broker.live.file = str(file)
        opened: list[bool] = []
        broker.reloads.add("log file", lambda: opened.append(True))
        file.unlink()
        if wrong == "folder":
            file.mkdir()
        elif wrong != "missing":
            file.write_bytes(right.encode() + (b"[limits]\n\xff" if wrong == "bytes" else b"limits"))
        if wrong == "dotted":
            file.write_text('admin.socket = "a.sock"\n[pulsar]\nlisten = \n')
        is_known = wrong in ("bytes", "lines", "dotted")
        said = await asyncio.to_thread(cli, "reload", "--config", str(file))
        assert said.code == 1
        assert ("; the server was not asked: admin.socket is not known" in said.err) is not is_known
        assert opened == [True] * is_known
        monkeypatch.setenv("BROKER_CORE_ADMIN__SOCKET", str(tmp_path / "a.sock"))
        said = await asyncio.to_thread(cli, "reload", "--config", str(file))
        assert (said.code, f"broker-core: settings: {file}: " in said.err) == (1, True)
        assert opened == [True] * (1 + is_known)
        assert broker.reloads.failing["settings"]


async def test_beside_a_server_that_is_embedded_nothing_is_wrong(cli: Cli, tmp_path: Path) -> None:
    file = file_with(tmp_path / "f.toml", '[pulsar]\nlisten = "127.0.0.1:0"\n[admin]\nsocket = "a.sock"\n')
    async with Broker(load_settings(file, environment={}).settings):
        said = await asyncio.to_thread(cli, "check", "--config", str(file))
        assert "is that of a broker-core that runs" in said.out
        assert " reload: " not in said.out
        said = await asyncio.to_thread(cli, "reload", "--dry-run", "--config", str(file))
        assert said.code == 1
        assert "the settings were given by the program that runs the server" in said.err


def test_rules_that_change_are_shown_alone() -> None:
    kept = [{"roles": [role], "topics": None} for role in ("a", "b", "c", "d")]
    change = {
        "setting": "authorization.rules",
        "before": kept,
        "after": [{"roles": ["new"], "topics": ["x"]}, kept[0], kept[1], kept[3]],
    }
    told = {"failed": {}, "changed": [change], "restart": [], "reloaded": []}
    assert list(_lines(told, dry_run=True)) == [
        'would change: authorization.rules: +1 {"roles":["new"],"topics":["x"]}',
        'would change: authorization.rules: -3 {"roles":["c"]}',
    ]
    change |= {"before": [], "after": kept[:1]}
    assert list(_lines(told, dry_run=False)) == ['changed: authorization.rules: +1 {"roles":["a"]}']


def test_without_a_socket_it_says_what_to_do(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "f.toml").write_text("")
    assert "admin.socket" in cli("reload", "--config", str(tmp_path / "f.toml")).failed(1)

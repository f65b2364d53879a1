"""Rights of followers: those that a gate refuses end, and those whose gate fails wait."""

from __future__ import annotations

from pathlib import Path

from broker_core import Refused
from broker_core.access import Access
from broker_core.access.asker import Asker
from broker_core.broker.opened_core import opened_pipeline
from broker_core.names import NamespaceName
from broker_core.service.following.follower_rights import end_refused
from broker_core.settings import Settings
from tests.support.followers import RecordingFollower
from tests.support.plugins import PluginOf

NAMESPACE = NamespaceName("a", "b")


async def test_a_gate_ends_whom_it_refuses_and_suspends_while_it_fails(tmp_path: Path) -> None:
    is_broken = True

    def authorize(access: Access) -> Refused | None:
        if access.asker.role == "unknown" and is_broken:
            raise RuntimeError("broken")
        return Refused("no") if access.asker.role == "refused" else None

    settings = Settings.model_validate({"catalog": {"path": tmp_path / "c.sqlite"}})
    followers = {role: RecordingFollower(Asker(role)) for role in ("allowed", "refused", "unknown")}
    left: list[object] = []
    async with opened_pipeline(
        settings, plugins={"gate": PluginOf(authorize=authorize)}, create=True
    ) as opened:
        await end_refused(opened, NAMESPACE, followers.values(), left.append)
        assert left == [followers["refused"]]
        assert [each.ended is not None for each in followers.values()] == [False, True, False]
        assert [each.is_suspended for each in followers.values()] == [False, False, True]
        is_broken = False
        await end_refused(opened, NAMESPACE, [followers["unknown"]], left.append)
        assert not followers["unknown"].is_suspended

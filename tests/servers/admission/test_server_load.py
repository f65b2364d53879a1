"""The load of all connections together, and the choice of a connection to close."""

from __future__ import annotations

from broker_core.servers.admission.server_load import ServerLoad

MIB = 1024 * 1024


def test_there_is_room_up_to_64_mebibytes() -> None:
    load = ServerLoad()
    load.hold(63 * MIB)
    assert load.has_room_for(MIB)
    assert not load.has_room_for(MIB + 1)
    load.hold(-63 * MIB)
    assert load.has_room_for(64 * MIB)
    assert load.buffered_bytes == 0


def test_a_small_command_is_not_counted_and_needs_no_room() -> None:
    load = ServerLoad()
    assert [load.hold_command(size) for size in (4096, 4097)] == [0, 4097]
    assert load.buffered_bytes == 4097
    load.hold(64 * MIB)
    assert load.has_room_for(4096)
    assert not load.has_room_for(4097)


def test_others_may_make_room_for_a_whole_command() -> None:
    load = ServerLoad()
    load.hold(64 * MIB)
    asked = []

    def make_room(size: int) -> None:
        asked.append(size)
        load.hold(-4 * MIB)

    load.make_room = make_room
    assert load.has_room_for(MIB)
    assert load.has_room_for(3 * MIB)
    assert not load.has_room_for(9 * MIB)
    assert asked == [MIB, 9 * MIB]


def test_who_holds_a_large_part_has_to_go_when_all_hold_too_much() -> None:
    load = ServerLoad()
    load.connections = 4
    load.hold(64 * MIB)
    assert not load.is_too_much(64 * MIB)
    load.hold(1)
    assert load.is_too_much(17 * MIB)
    assert not load.is_too_much(15 * MIB)


def test_the_places_for_requests_are_those_of_the_settings() -> None:
    assert ServerLoad(1).slots.take()
    load = ServerLoad(1)
    load.slots.take()
    assert load.slots.are_taken

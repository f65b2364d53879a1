from __future__ import annotations

from collections.abc import Callable

from broker_core.servers.kafka.cluster.node_ports import NodePorts


class Doors:
    """Listens at any port but the taken ones."""

    def __init__(self, taken: set[int] | None = None) -> None:
        self.open: dict[int, int] = {}
        self._taken = taken or set()

    async def listen(self, node: int, port: int) -> Callable[[], None]:
        if port in self._taken:
            raise OSError("taken")
        self.open[port] = node

        def end() -> None:
            del self.open[port]

        return end


async def test_a_node_keeps_its_port_as_long_as_it_is_there() -> None:
    doors, ports = Doors(), NodePorts(100, 109)
    assert await ports.add("h", doors.listen, [1, 2], tls=False) == []
    first, second = (ports.address(node, tls=False) for node in (1, 2))
    assert {first, second} == {("h", port) for port in doors.open}
    assert await ports.fit([2, 3]) == []
    assert ports.address(2, tls=False) == second
    assert ports.address(1, tls=False) is None
    assert sorted(doors.open.values()) == [2, 3]


async def test_two_listeners_have_ports_of_their_own() -> None:
    doors, ports = Doors(), NodePorts(100, 101)
    await ports.add("h", doors.listen, [1], tls=False)
    assert await ports.add("s", doors.listen, [1], tls=True) == []
    assert ports.address(1, tls=False) != ports.address(1, tls=True)
    assert await ports.fit([1, 2]) == [2]
    assert ports.without(tls=False) == ports.without(tls=True) == ports.without() == [2]
    assert await ports.fit([2]) == []


async def test_a_node_may_have_a_port_at_one_listener_alone() -> None:
    doors, ports = Doors({102}), NodePorts(100, 102)
    await ports.add("h", doors.listen, [1], tls=False)
    await ports.add("s", doors.listen, [1], tls=True)
    await ports.fit([2])
    await ports.fit([1, 2])
    assert ports.without() == [1]
    assert [ports.without(tls=False), ports.without(tls=True)].count([1]) >= 1


async def test_a_port_that_is_taken_is_no_node_s() -> None:
    doors, ports = Doors({101}), NodePorts(100, 102)
    assert await ports.add("h", doors.listen, [1, 4], tls=False) == []
    assert 101 not in doors.open

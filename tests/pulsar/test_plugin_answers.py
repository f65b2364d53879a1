"""What plugins answer, as clients of the protocol see it: whatever a plugin does, an exact answer or an error."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from broker_core import ListingRequest, TopicListingResult
from broker_core.errors import ListingFailed, ServerError, TooManyRequests
from broker_core.listing import Listing
from broker_core.names import Mode, NamespaceName
from broker_core.permits import PermitLimits
from broker_core.topics_hash import topics_hash
from tests.support.eventually import eventually
from tests.support.memory_lister import MemoryLister
from tests.support.plugins import PluginOf
from tests.support.pulsar_serving import Serving, serving
from tests.support.raw_client import RawClient, Refused

NAMESPACE = "t/n"
STORED = [f"persistent://t/n/stored-{number}" for number in range(4)]
A, B, C = (f"persistent://t/n/{letter}" for letter in "abc")
Ask = Callable[..., Any]

success = TopicListingResult.success


def answering(answer: Any) -> PluginOf:
    """A plugin that lists by ``answer``: what it returns, or a function of the request that gives that."""

    async def broker_core_list_topics(request: ListingRequest) -> Any:
        return answer(request) if callable(answer) else answer

    return PluginOf(list_topics=broker_core_list_topics)


def masking(mask: Callable[[Any], Any]) -> PluginOf:
    """A plugin that hides topics."""

    async def broker_core_visible(request: ListingRequest, topics: Any) -> Any:
        return mask(topics)

    return PluginOf(visible=broker_core_visible)


async def asked(
    plugins: Mapping[str, object],
    *,
    tables: Mapping[str, Mapping[str, object]] | None = None,
    then: Callable[[Serving], None] | None = None,
    **question: Any,
) -> Any:
    """One listing through a server with these plugins."""
    mode = question.pop("mode", 0)
    async with serving(MemoryLister(STORED), plugins, tables=tables) as s, await s.client() as client:
        try:
            return await client.ask(NAMESPACE, mode, **question)
        finally:
            await client.ping()
            if then is not None:
                then(s)


def topics(answer: Any) -> list[str]:
    return sorted(answer.topics)


# -- the chain --------------------------------------------------------------------------------------------------


async def test_the_first_success_answers_and_nobody_after_it_is_asked() -> None:
    called: list[str] = []

    def plugin(name: str, answer: Any) -> PluginOf:
        def note(_: ListingRequest) -> Any:
            called.append(name)
            return answer

        return answering(note)

    plugins = {
        "none": plugin("none", None),
        "passes": plugin("passes", TopicListingResult.pass_through()),
        "answers": plugin("answers", success([A])),
        "late": plugin("late", success([B])),
    }
    assert topics(await asked(plugins)) == [A]
    assert called == ["none", "passes", "answers"]


async def test_with_nobody_answering_the_default_lister_does() -> None:
    plugins = {"none": answering(None), "passes": answering(TopicListingResult.pass_through())}
    answer = await asked(plugins, pattern="t/n/stored-[01]")
    assert (topics(answer), answer.filtered) == (STORED[:2], True)


async def test_an_empty_success_is_an_answer() -> None:
    answer = await asked({"none": answering(success([])), "late": answering(success([A]))})
    assert (topics(answer), answer.topics_hash, answer.changed) == ([], "00000000", True)


async def test_a_plugin_is_not_asked_about_the_namespaces_of_others() -> None:
    tables = {"mine": {"namespaces": ["other/*"]}}
    assert topics(await asked({"mine": answering(success([A]))}, tables=tables)) == STORED


async def test_what_a_plugin_gets() -> None:
    got: list[tuple[Any, ...]] = []

    def broker_core_list_topics(
        properties: Any, topics_pattern: Any, mode: Any, namespace: Any, request: Any
    ) -> None:
        got.append((str(namespace), mode, topics_pattern, dict(properties), request))

    await asked(
        {"p": PluginOf(list_topics=broker_core_list_topics)},
        mode=2,
        pattern="persistent://t/n/x.*",
        properties={"k": "v"},
        topics_hash="0123abcd",
    )
    namespace, mode, pattern, properties, request = got[0]
    assert (namespace, mode, pattern, properties) == ("t/n", Mode.ALL, "persistent://t/n/x.*", {"k": "v"})
    assert request.pattern.ranges == ((b"t/n/x", b"t/n/x\xff"),)
    assert request.topics_hash == "0123abcd"
    assert request.asker.client_version == "Pulsar-Java-v4.2.4"


# -- what a success may hold --------------------------------------------------------------------------------------


class Lazy(list[str]):
    """A sequence of a plugin's own making."""


@pytest.mark.parametrize(
    "given",
    [
        [B, A, C],
        (A, B, C),
        [A, B, C, A, A],
        Lazy([C, B, A]),
        pa.array([B, A, C]),
        pa.array([A, B, C], pa.large_string()),
        pa.array([A, B, C, "x"])[:3],
        pa.array([A, B, C, B]).dictionary_encode(),
        pa.chunked_array([[C], [], [A, B]]),
        Listing.from_names(NamespaceName("t", "n"), Mode.PERSISTENT, [A, B, C]),
        Listing.from_names(NamespaceName("t", "n"), Mode.PERSISTENT, [A, B, C]).all(),
        [*[A, B, C], "persistent://t/n/__change_events", "persistent://t/n/x__transaction_pending_ack"],
    ],
    ids=str,
)
async def test_topics_in_any_form(given: Any) -> None:
    answer = await asked({"p": answering(success(given))})
    assert topics(answer) == [A, B, C]
    assert answer.topics_hash == topics_hash([A, B, C])
    assert not answer.filtered


async def test_a_part_of_a_listing() -> None:
    listing = Listing.from_names(NamespaceName("t", "n"), Mode.PERSISTENT, [A, B, C])
    answer = await asked({"p": answering(success(listing.rows(np.array([0, 2]))))})
    assert topics(answer) == [A, C]
    assert answer.topics_hash == topics_hash([A, C])


async def test_topics_of_both_domains() -> None:
    other = "non-persistent://t/n/a"
    answer = await asked({"p": answering(success([A, other]))}, mode=2)
    assert topics(answer) == [other, A]
    with pytest.raises(Refused, match="does not belong into a listing of mode PERSISTENT"):
        await asked({"p": answering(success([A, other]))}, mode=0)


BAD_TOPICS: list[tuple[Any, str]] = [
    ([A, "persistent://t/other/b"], "is not in namespace t/n"),
    ([A, "non-persistent://t/n/b"], "does not belong into a listing of mode PERSISTENT"),
    ([A, "b"], "Invalid topic name 'b'"),
    ([A, ""], "Invalid topic name ''"),
    ([A, "persistent://t/n/"], "Invalid topic name"),
    ([A, "persistent://t/n/b/c"], "Invalid topic name"),
    ([A, "topic://t/n/b"], "topic"),
    ([A, "persistent://t/n/" + "x" * 40_000], "40000 bytes"),
    ([A, "persistent://t/n/\ud800"], "not valid Unicode"),
    ([A, None], "null"),
    ([A, 7], "topics must be strings"),
    ([A, A.encode()], "topics must be a sequence of strings"),
    (range(3), "topics must be strings"),
    (pa.array([A, None]), "null"),
    (pa.array([1, 2]), "topics must be strings"),
    (pa.array([A.encode()], pa.binary()), "topics must be strings"),
    (
        Listing.from_names(NamespaceName("t", "x"), Mode.PERSISTENT, []),
        "returned a listing of t/x PERSISTENT",
    ),
    (Listing.from_names(NamespaceName("t", "n"), Mode.ALL, [A]), "returned a listing of t/n ALL"),
]


@pytest.mark.parametrize(("given", "message"), BAD_TOPICS, ids=[message for _, message in BAD_TOPICS])
async def test_bad_topics_are_an_error_that_names_the_plugin(given: Any, message: str) -> None:
    with pytest.raises(Refused) as raised:
        await asked({"bad-one": answering(success(given))})
    assert raised.value.code is ServerError.MetadataError
    assert raised.value.message.startswith("plugin 'bad-one' ")
    assert message in raised.value.message


@pytest.mark.parametrize(
    ("given", "message"), BAD_TOPICS[:8:3], ids=[message for _, message in BAD_TOPICS[:8:3]]
)
async def test_after_bad_topics_the_next_is_asked_by_setting(given: Any, message: str) -> None:
    plugins = {"bad-one": answering(success(given)), "next": answering(success([B]))}
    tables = {"bad-one": {"on_failure": "next"}}
    assert topics(await asked(plugins, tables=tables)) == [B]


GARBAGE: list[Any] = ["a", b"a", 7, [], {A: 1}, object(), True, (True, [A]), NotImplemented]


@pytest.mark.parametrize("garbage", GARBAGE, ids=lambda value: type(value).__name__)
@pytest.mark.parametrize("sync", [True, False])
async def test_what_is_no_answer_is_an_error(garbage: Any, sync: bool) -> None:
    plugin = PluginOf(list_topics=lambda: garbage) if sync else answering(garbage)
    with pytest.raises(Refused, match=r"MetadataError: plugin 'p' gave a wrong answer: it returned a "):
        await asked({"p": plugin})


@pytest.mark.parametrize("arguments", [(None,), ("a string",), (b"bytes",), ({A},), (iter([A]),), (7,)])
async def test_a_success_that_cannot_be_is_an_error_of_the_plugin(arguments: tuple[Any, ...]) -> None:
    with pytest.raises(Refused, match=r"MetadataError: plugin 'p' failed: (TypeError|ValueError)"):
        await asked({"p": answering(lambda _: success(*arguments))})


async def test_a_sequence_that_fails_fails_in_its_plugins_time() -> None:
    class Failing(list[str]):
        def __iter__(self) -> Any:
            raise RuntimeError("the database is gone")

    with pytest.raises(Refused, match=r"plugin 'p' failed: RuntimeError"):
        await asked({"p": answering(lambda _: success(Failing([A])))})


# -- failures -----------------------------------------------------------------------------------------------------


def raising(error: BaseException) -> Callable[..., Any]:
    def fail(*_: Any) -> Any:
        raise error

    return fail


FAILURES: list[BaseException] = [
    RuntimeError("secret"),
    KeyError("x"),
    TimeoutError(),
    StopIteration(),
    asyncio.CancelledError(),
    SystemExit(1),
    KeyboardInterrupt(),
    MemoryError(),
    AssertionError(),
]


@pytest.mark.parametrize("error", FAILURES, ids=repr)
@pytest.mark.parametrize("sync", [True, False])
async def test_a_plugin_that_raises(error: BaseException, sync: bool) -> None:
    def broker_core_list_topics() -> Any:
        raise error

    plugin = PluginOf(list_topics=broker_core_list_topics) if sync else answering(raising(error))
    with pytest.raises(Refused, match=r"MetadataError: plugin 'p' failed: ") as raised:
        await asked({"p": plugin})
    assert "secret" not in raised.value.message
    tables = {"p": {"on_failure": "next"}}
    assert topics(await asked({"p": plugin}, tables=tables)) == STORED


async def test_a_plugin_may_say_itself_what_a_client_is_told() -> None:
    error = ListingFailed("no such tenant", code=ServerError.AuthorizationError)
    with pytest.raises(Refused, match=r"AuthorizationError: plugin 'p' failed: no such tenant"):
        await asked({"p": answering(raising(error))})


async def test_a_hanging_plugin_meets_its_deadline() -> None:
    released = threading.Event()
    waits = asyncio.Event()

    async def broker_core_list_topics() -> Any:
        await waits.wait()

    hanging = {
        "async": PluginOf(list_topics=broker_core_list_topics),
        "sync": PluginOf(list_topics=lambda: released.wait()),  # noqa: PLW0108  # a method cannot be marked
    }
    try:
        for name, plugin in hanging.items():
            tables: dict[str, dict[str, object]] = {name: {"deadline": 0.02}}
            with pytest.raises(
                Refused, match=rf"MetadataError: plugin '{name}' did not answer within 0.02 s"
            ):
                await asked({name: plugin}, tables=tables)
            tables[name]["on_failure"] = "next"
            assert topics(await asked({name: plugin}, tables=tables)) == STORED
    finally:
        released.set()


async def test_the_breaker_opens_and_says_so() -> None:
    calls = 0

    def fail(_: ListingRequest) -> Any:
        nonlocal calls
        calls += 1
        raise RuntimeError

    plugin = {"p": answering(fail)}
    async with serving(MemoryLister(STORED), plugin) as s, await s.client() as client:
        for _ in range(5):
            with pytest.raises(Refused, match=r"failed: RuntimeError"):
                await client.ask(NAMESPACE)
        with pytest.raises(
            Refused, match=r"MetadataError: plugin 'p' is not asked for now: it failed 5 times"
        ):
            await client.ask(NAMESPACE)
        assert calls == 5


async def test_bad_topics_open_the_breaker_too() -> None:
    async with (
        serving(MemoryLister(STORED), {"p": answering(success(["bad"]))}) as s,
        await s.client() as client,
    ):
        for _ in range(5):
            with pytest.raises(Refused, match=r"Invalid topic name"):
                await client.ask(NAMESPACE)
        with pytest.raises(Refused, match=r"is not asked for now"):
            await client.ask(NAMESPACE)


async def test_a_refused_reservation_is_the_brokers_answer_and_no_failure_of_the_plugin() -> None:
    async def broker_core_list_topics(request: ListingRequest) -> Any:
        await request.reserve(900_000)
        return success([A])

    limits = PermitLimits(heap=1_000_000, timeout=0.02)
    plugin = {"p": PluginOf(list_topics=broker_core_list_topics)}
    async with serving(plugins=plugin, limits=limits) as s, await s.client() as client:
        held = await s.permits.heap.acquire(500_000)
        for _ in range(6):
            with pytest.raises(Refused, match=r"^TooManyRequests: Failed due to heap memory limit exceeded$"):
                await client.ask(NAMESPACE)
        held.release()
        assert topics(await client.ask(NAMESPACE)) == [A]


async def test_waiting_for_permits_is_not_the_plugins_time() -> None:
    async def broker_core_list_topics(request: ListingRequest) -> Any:
        await request.reserve(900_000)
        return success([A])

    plugin = {"p": PluginOf(list_topics=broker_core_list_topics)}
    limits = PermitLimits(heap=1_000_000)
    async with (
        serving(plugins=plugin, limits=limits, tables={"p": {"deadline": 1}}) as s,
        await s.client() as client,
        await s.client() as other,
    ):
        held = await s.permits.heap.acquire(500_000)
        request_id, frame = client.question(NAMESPACE)
        await client.send(frame)
        await eventually(lambda: s.permits.heap.queue_size == 1)
        loop = asyncio.get_running_loop()
        longer = loop.create_future()
        loop.call_later(1.1, longer.set_result, None)
        await longer
        await other.ping()
        held.release()
        assert topics(RawClient.answer(await client.receive(), request_id)) == [A]


async def test_what_a_plugin_leaves_behind_holds_nothing() -> None:
    """A task of a plugin that goes on after its answer cannot reserve any more."""
    outcomes: list[BaseException | None] = []
    tasks: list[asyncio.Task[None]] = []
    go_on = asyncio.Event()

    async def late(request: ListingRequest) -> None:
        await go_on.wait()
        try:
            await request.reserve(500_000)
        except ListingFailed as error:
            outcomes.append(error)

    async def broker_core_list_topics(request: ListingRequest) -> Any:
        tasks.append(asyncio.create_task(late(request)))
        tasks.append(asyncio.create_task(request.reserve(10**12)))
        return success([A])

    limits = PermitLimits(heap=1_000_000)
    plugin = {"p": PluginOf(list_topics=broker_core_list_topics)}
    async with serving(plugins=plugin, limits=limits) as s, await s.client() as client:
        held = await s.permits.heap.acquire(500_000)
        assert topics(await client.ask(NAMESPACE)) == [A]
        held.release()
        go_on.set()
        await tasks[0]
        assert "This request is over" in str(outcomes[0])
        assert isinstance(await asyncio.gather(tasks[1], return_exceptions=True), list)


# -- filtered -----------------------------------------------------------------------------------------------------


async def test_unfiltered_topics_are_filtered_here() -> None:
    answer = await asked({"p": answering(success([A, B, C]))}, pattern="t/n/[ab]")
    assert (topics(answer), answer.filtered, answer.topics_hash) == ([A, B], True, topics_hash([A, B]))


async def test_filtered_topics_are_sent_as_they_are() -> None:
    answer = await asked({"p": answering(success([A, B], filtered=True))}, pattern="t/n/[ab]")
    assert (topics(answer), answer.filtered) == ([A, B], True)


@pytest.mark.parametrize("verify", ["always", "sample"])
async def test_a_lie_about_filtered_is_found_counted_and_logged_once(verify: str) -> None:
    plugin = {"liar": answering(success([A, B, C], filtered=True, topics_hash=topics_hash([A, B, C])))}
    tables = {"liar": {"verify_filtered": verify}}
    async with serving(MemoryLister(STORED), plugin, tables=tables) as s, await s.client() as client:
        for _ in range(3):
            answer = await client.ask(NAMESPACE, pattern="t/n/[ab]")
            assert (topics(answer), answer.filtered, answer.topics_hash) == (
                [A, B],
                True,
                topics_hash([A, B]),
            )
        assert s.dispatcher.claim_mismatches() == {"liar": 3}
        said = [event for event in s.logs if "filtered" in event["event"]]
        assert [(event["plugin"], event["log_level"]) for event in said] == [("liar", "warning")]


async def test_where_the_operator_believes_it_nobody_looks() -> None:
    plugin = {"liar": answering(success([A, C], filtered=True))}
    answer = await asked(plugin, tables={"liar": {"verify_filtered": "never"}}, pattern="t/n/[ab]")
    assert (topics(answer), answer.filtered) == ([A, C], True)


async def test_where_the_pattern_could_not_be_compiled_the_client_filters() -> None:
    answer = await asked({"p": answering(success([A, B], filtered=True))}, pattern="t/n/(?!c).*")
    assert (topics(answer), answer.filtered) == ([A, B], False)


async def test_without_a_pattern_nothing_is_filtered() -> None:
    assert not (await asked({"p": answering(success([A], filtered=True))})).filtered


# -- hashes -------------------------------------------------------------------------------------------------------


OWN = "0badc0de"  # a hash that only the plugin could have made


@pytest.mark.parametrize(
    ("given", "pattern", "used"),
    [
        ([A, B], None, True),
        ([A, B], "t/n/.*", True),  # nothing was removed
        ([A, B], "t/n/a", False),
        ([A, A, B], None, False),  # one collapsed
        ([A, "persistent://t/n/__change_events"], None, False),
    ],
)
async def test_a_plugins_hash_is_sent_where_it_is_believed_and_nothing_is_removed_after_it(
    given: list[str], pattern: str | None, used: bool
) -> None:
    plugin, tables = {"p": answering(success(given, topics_hash=OWN))}, {"p": {"verify_filtered": "never"}}
    answer = await asked(plugin, tables=tables, pattern=pattern)
    assert answer.topics_hash == (OWN if used else topics_hash(answer.topics))

    def counted(s: Serving) -> None:
        assert s.dispatcher.claim_mismatches() == ({"p": 1} if used else {})

    answer = await asked(plugin, pattern=pattern, then=counted)
    assert answer.topics_hash == topics_hash(answer.topics)


async def test_a_wrong_hash_is_never_sent_and_logged_once() -> None:
    plugin = {"p": answering(success([A, B], topics_hash=OWN))}
    async with serving(MemoryLister(STORED), plugin) as s, await s.client() as client:
        for _ in range(3):
            assert (await client.ask(NAMESPACE)).topics_hash == topics_hash([A, B])
        assert s.dispatcher.claim_mismatches() == {"p": 3}
        assert [event["event"] for event in s.logs if event.get("plugin") == "p"] == [
            "plugin gave a wrong topics hash; the server computes it"
        ]
    right = {"p": answering(success([A, B], topics_hash=topics_hash([A, B])))}
    async with serving(MemoryLister(STORED), right) as s, await s.client() as client:
        assert (await client.ask(NAMESPACE)).topics_hash == topics_hash([A, B])
        assert not s.dispatcher.claim_mismatches()


async def test_a_hash_that_is_none_is_an_error() -> None:
    with pytest.raises(
        Refused, match=r"MetadataError: plugin 'p' returned a topics hash that is none: 'nonsense"
    ):
        await asked({"p": answering(success([A], topics_hash="nonsense" * 50))})


async def test_the_clients_hash_still_holds() -> None:
    for pattern, expected in ((None, [A, B, C]), ("t/n/[ab]", [A, B])):
        answer = await asked(
            {"p": answering(success([A, B, C]))}, pattern=pattern, topics_hash=topics_hash(expected)
        )
        assert (topics(answer), answer.changed, answer.filtered) == ([], False, pattern is not None)
    answer = await asked({"p": answering(success([A], topics_hash=OWN))}, topics_hash=OWN)
    assert answer.changed


async def test_unchanged_is_legal_with_the_hash_of_the_request() -> None:
    plugin = {"p": answering(lambda request: TopicListingResult.unchanged(request.topics_hash))}
    answer = await asked(plugin, topics_hash="0123abcd", pattern="t/n/.*")
    assert (topics(answer), answer.changed, answer.topics_hash, answer.filtered) == (
        [],
        False,
        "0123abcd",
        True,
    )
    answer = await asked(plugin, topics_hash="0123abcd")
    assert not answer.filtered


@pytest.mark.parametrize("given", [None, "0123abcd", ""])
async def test_unchanged_is_illegal_with_any_other(given: str | None) -> None:
    plugin = {"p": answering(TopicListingResult.unchanged("76543210"))}
    with pytest.raises(
        Refused, match=r"MetadataError: plugin 'p' gave a wrong answer: it returned unchanged"
    ):
        await asked(plugin, topics_hash=given)


# -- masks --------------------------------------------------------------------------------------------------------


def containing(text: str) -> Callable[[Any], Any]:
    return lambda topics: pc.match_substring(topics, text)


async def test_masks_are_anded_before_the_hash() -> None:
    names = [f"persistent://t/n/{text}" for text in ("x", "xy", "xyz", "yz", "z")]
    plugins = {
        "lists": answering(success(names, topics_hash=topics_hash(names))),
        "all": masking(lambda _: None),
        "x": masking(containing("x")),
        "numpy": masking(lambda topics: np.array(["y" in name for name in topics.to_pylist()])),
    }
    answer = await asked(plugins)
    assert (topics(answer), answer.topics_hash) == (names[1:3], topics_hash(names[1:3]))
    answer = await asked(plugins, pattern="t/n/.*z")
    assert (topics(answer), answer.topics_hash, answer.filtered) == (
        names[2:3],
        topics_hash(names[2:3]),
        True,
    )


async def test_a_mask_sees_what_the_default_lister_listed_and_what_the_pattern_left() -> None:
    seen: list[list[str]] = []

    def mask(topics: Any) -> Any:
        seen.append(topics.to_pylist())
        return pc.ends_with(topics, "2")

    answer = await asked({"m": masking(mask)}, pattern="t/n/stored-[123]")
    assert (topics(answer), answer.topics_hash) == (STORED[2:3], topics_hash(STORED[2:3]))
    assert seen == [STORED[1:]]


async def test_a_mask_over_scattered_rows_of_thousands() -> None:
    names = [f"persistent://t/n/{number:05d}" for number in range(5000)]
    plugins = {"m": masking(lambda topics: pc.ends_with(topics, "7"))}
    async with serving(MemoryLister(names), plugins) as s, await s.client() as client:
        answer = await client.ask(NAMESPACE, pattern="t/n/.*[37]")
        assert topics(answer) == names[7::10]
        assert answer.topics_hash == topics_hash(names[7::10])


async def test_a_mask_that_shows_all_changes_nothing() -> None:
    answer = await asked({"m": masking(pc.is_valid)})
    assert (topics(answer), answer.topics_hash) == (STORED, topics_hash(STORED))


async def test_the_clients_hash_is_of_what_is_visible() -> None:
    """A lister must not compare the client's hash with the whole, of which the client knows nothing."""
    hashes: list[Any] = []

    def note(request: ListingRequest) -> Any:
        hashes.append(request.topics_hash)
        return success([A, B])

    plugins = {"l": answering(note), "m": masking(containing("/b"))}
    answer = await asked(plugins, topics_hash=topics_hash([B]))
    assert (answer.changed, topics(answer)) == (False, [])
    answer = await asked(plugins, topics_hash=topics_hash([A, B]))
    assert (answer.changed, topics(answer)) == (True, [B])
    assert hashes == [None, None]


async def test_unchanged_is_illegal_under_a_mask() -> None:
    plugins = {"l": answering(TopicListingResult.unchanged("0123abcd")), "m": masking(lambda _: None)}
    with pytest.raises(Refused, match=r"plugin 'l' gave a wrong answer: it returned unchanged\(\), but"):
        await asked(plugins, topics_hash="0123abcd")


@pytest.mark.parametrize(
    ("mask", "message"),
    [
        (raising(RuntimeError()), "failed: RuntimeError"),
        (lambda topics: topics, "gave a wrong answer"),
        (lambda topics: pa.array([True]), "gave a wrong answer: the mask has 1 values for 4 topics"),
        (lambda topics: pa.array([True, None, True, True]), "gave a wrong answer: the mask has 1 nulls"),
        (lambda topics: [True] * len(topics), "gave a wrong answer"),
        (lambda topics: np.arange(len(topics)), "gave a wrong answer"),
        (lambda topics: True, "gave a wrong answer"),
    ],
)
async def test_a_mask_that_fails_is_an_error_whatever_the_setting(mask: Any, message: str) -> None:
    """A filter that fails must not open the gate."""
    with pytest.raises(Refused) as raised:
        await asked({"m": masking(mask)}, tables={"m": {"on_failure": "next"}})
    assert raised.value.code is ServerError.MetadataError
    assert message in raised.value.message


async def test_masks_apply_to_their_namespaces_only() -> None:
    tables = {"m": {"namespaces": ["other/*"]}}
    assert topics(await asked({"m": masking(pc.is_null)}, tables=tables)) == STORED


# -- versions -----------------------------------------------------------------------------------------------------


class Versioned:
    """Answers with a version; ``depends_on`` is what it says that its answers depend on."""

    def __init__(self) -> None:
        self.topics: Any = [A, B]
        self.version: str | int | None = "v1"
        self.calls = 0

    def plugin(self, *depends_on: str) -> PluginOf:
        async def broker_core_list_topics(request: ListingRequest) -> Any:
            self.calls += 1
            return success(self.topics, version=self.version)

        return PluginOf(list_topics=broker_core_list_topics, depends_on=lambda: frozenset(depends_on))


async def test_an_answer_with_a_version_is_built_once() -> None:
    source = Versioned()
    plugins = {"p": source.plugin()}
    async with serving(plugins=plugins) as s, await s.client() as client:
        assert topics(await client.ask(NAMESPACE)) == [A, B]
        assert len(s.pipeline.answers) == 1
        source.topics = [C]  # a lie: other topics under the same version
        for pattern in (None, "t/n/.*"):
            assert topics(await client.ask(NAMESPACE, pattern=pattern)) == [A, B]
        assert source.calls == 3
        source.version = "v2"
        assert topics(await client.ask(NAMESPACE)) == [C]
        assert len(s.pipeline.answers) == 1
        s.pipeline.kept.forget(NamespaceName("t", "n"))
        assert s.permits.snapshots.acquired == 0
        assert topics(await client.ask(NAMESPACE)) == [C]


async def test_without_a_version_nothing_is_kept() -> None:
    source = Versioned()
    source.version = None
    async with serving(plugins={"p": source.plugin()}) as s, await s.client() as client:
        await client.ask(NAMESPACE)
        source.topics = [C]
        assert topics(await client.ask(NAMESPACE)) == [C]
        assert len(s.pipeline.answers) == 0


@pytest.mark.parametrize(
    ("depends_on", "questions"),
    [
        ((), 1),
        (("pattern",), 2),
        (("properties",), 2),
        (("pattern", "properties"), 4),
        (("client",), 2),
        (("principal",), 1),  # nobody is authenticated yet
    ],
)
async def test_an_answer_is_kept_for_all_that_it_depends_on(
    depends_on: tuple[str, ...], questions: int
) -> None:
    source = Versioned()
    async with serving(plugins={"p": source.plugin(*depends_on)}) as s:
        for version in ("one", "two"):
            async with await s.client(client_version=version) as client:
                for pattern in ("t/n/a", "t/n/.*"):
                    for value in ("x", "y"):
                        await client.ask(NAMESPACE, pattern=pattern, properties={"k": value})
                if "client" not in depends_on:
                    assert len(s.pipeline.answers) == questions
        assert len(s.pipeline.answers) == questions


async def test_modes_do_not_mix() -> None:
    source = Versioned()
    async with serving(plugins={"p": source.plugin()}) as s, await s.client() as client:
        for mode in (0, 2):
            assert topics(await client.ask(NAMESPACE, mode)) == [A, B]
        assert len(s.pipeline.answers) == 2


async def test_masks_apply_to_kept_answers_each_time() -> None:
    shown = "/a"
    plugins = {"p": Versioned().plugin(), "m": masking(lambda topics: pc.match_substring(topics, shown))}
    async with serving(plugins=plugins) as s, await s.client() as client:
        assert topics(await client.ask(NAMESPACE)) == [A]
        shown = "/b"
        assert topics(await client.ask(NAMESPACE)) == [B]


# -- the rest -----------------------------------------------------------------------------------------------------


async def test_large_answers_of_plugins_are_exact() -> None:
    names = [f"persistent://t/n/{number:06d}-\U0001f600" for number in range(20_000)]
    async with serving(plugins={"p": answering(success(names[::-1]))}) as s, await s.client() as client:
        answer = await client.ask(NAMESPACE)
        assert list(answer.topics) == names
        assert answer.topics_hash == topics_hash(names)
        answer = await client.ask(NAMESPACE, pattern="t/n/.*7-.")
        assert list(answer.topics) == names[7::10]


async def test_observers_hear_how_it_ended() -> None:
    heard: list[tuple[Any, ...]] = []

    async def broker_core_listing_served(request: ListingRequest, outcome: Any) -> None:
        heard.append((request.topics_pattern, outcome.outcome, outcome.lister, outcome.topics, outcome.error))

    plugins = {
        "o": PluginOf(listing_served=broker_core_listing_served),
        "p": answering(lambda request: success(["bad"] if request.properties else [A, B])),
    }
    async with serving(plugins=plugins) as s, await s.client() as client:
        await client.ask(NAMESPACE, pattern="t/n/a")
        await client.ask(NAMESPACE, topics_hash=topics_hash([A, B]))
        with pytest.raises(Refused):
            await client.ask(NAMESPACE, properties={"k": "v"})
        await eventually(lambda: len(heard) == 3)
    assert heard[0] == ("t/n/a", "served", "p", 1, None)
    assert heard[1] == (None, "unchanged", "p", 0, None)
    assert heard[2][1:4] == ("error", "p", 0)
    assert "Invalid topic name 'bad'" in heard[2][4]


async def test_too_many_requests_of_a_plugin_passes() -> None:
    with pytest.raises(Refused, match=r"TooManyRequests: later"):
        await asked({"p": answering(raising(TooManyRequests("later", reason="mine")))})

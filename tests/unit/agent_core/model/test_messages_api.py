"""One reply over the real SDK and real HTTP: what is sent, what is tried again and after how long, what is given up."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any

import anyio
import pytest
from attrs import define, evolve, field

from agent_core.errors import FatalModelError, MissingCredentials
from agent_core.events import Retrying, TextDelta
from agent_core.messages import ModelReply, TextBlock, Usage
from agent_core.model import messages_api
from agent_core.model.messages_api import MessagesApi, call_model
from agent_core.model.providers import Credentials, credentials
from agent_core.ports import ModelRequest
from lsp_server.demo.model_server import ModelServer
from lsp_server.demo.script import Fault, Script, conversation, say
from tests.unit.agent_core.builders import StillClock
from tests.unit.agent_core.workshop import import_sdk

pytestmark = pytest.mark.anyio

REQUEST = ModelRequest(
    "claude-sonnet-5-5",
    1000,
    [{"type": "text", "text": "You"}],
    [{"name": "Read", "description": "reads", "input_schema": {"type": "object"}}],
    [{"role": "user", "content": [{"type": "text", "text": "go"}]}],
)


@define(eq=False)
class Service:
    """The scripted service and our client of it, on a clock that stands still."""

    server: ModelServer
    client: MessagesApi
    clock: StillClock = field(factory=StillClock)
    seen: list[Any] = field(factory=list)
    first_seen: anyio.Event = field(factory=anyio.Event)

    def says(self, *content: Any, **options: Any) -> None:
        self.server.set_script(Script((conversation(say(*content, **options)),)), reset=True)

    async def call(self, request: ModelRequest = REQUEST, attempts: int = 4) -> ModelReply:
        with anyio.fail_after(10):
            return await call_model(
                self.client,
                request,
                clock=self.clock,
                max_attempts=attempts,
                on_delta=self._see,
                on_retry=self._see,
            )

    def _see(self, each: Any) -> None:
        self.seen.append(each)
        self.first_seen.set()

    async def fails(self, **options: Any) -> str:
        with pytest.raises(FatalModelError) as caught:
            await self.call(**options)
        return str(caught.value)

    @property
    def retries(self) -> list[Retrying]:
        return [each for each in self.seen if isinstance(each, Retrying)]


@pytest.fixture
async def service() -> AsyncIterator[Service]:
    import_sdk()
    async with ModelServer(Script(())) as server:
        client = MessagesApi(lambda: Credentials("key", None, server.url))
        yield Service(server, client)
        await client.aclose()


async def test_a_reply_and_exactly_what_was_sent_for_it(service: Service) -> None:
    usage = {"input_tokens": 4, "cache_read_input_tokens": 3, "cache_creation_input_tokens": 2, "output_tokens": 1}
    service.says("four", chunk=2, usage=usage)
    reply = await service.call()
    assert (reply.message.content, reply.stop_reason, reply.usage) == (
        (TextBlock("four"),),
        "end_turn",
        Usage(4, 1, 3, 2, turns=1),
    )
    assert service.seen == [TextDelta(reply.message.id, "fo"), TextDelta(reply.message.id, "ur")]
    [entry] = service.server.requests()
    assert entry.json == {
        "model": "claude-sonnet-5-5",
        "max_tokens": 1000,
        "system": [{"type": "text", "text": "You"}],
        "tools": [{"name": "Read", "description": "reads", "input_schema": {"type": "object"}}],
        "messages": [{"role": "user", "content": [{"type": "text", "text": "go"}]}],
        "stream": True,
    }
    assert service.clock.slept == []


async def test_what_is_absent_is_not_sent_and_a_long_context_is_no_part_of_the_name(service: Service) -> None:
    service.says("ok")
    thinking = {"type": "adaptive"}
    await service.call(evolve(REQUEST, model="claude-sonnet-5-5[1m]", tools=[], thinking=thinking, max_tokens=2000))
    body = service.server.requests()[0].json
    assert (body["model"], body["thinking"], "tools" in body) == ("claude-sonnet-5-5", thinking, False)


ANSWERED = "the model service answered"
SLOW_DOWN = "the model service answered 429 rate_limit_error: Slow down"
OVERLOADED = "the model service answered 529 overloaded_error: Overloaded"
CUT = "the model's answer was cut off: the stream ended without message_stop"
BROKEN_OFF = "the model service broke off its answer: api_error: it broke"


def limited(**headers: str) -> Fault:
    return Fault("status", (1,), status=429, type="rate_limit_error", message="Slow down", headers=headers)


@pytest.mark.parametrize(
    ("fault", "reason", "delay"),
    [
        (limited(**{"retry-after-ms": "250", "retry-after": "7"}), SLOW_DOWN, 0.25),
        (limited(**{"retry-after": "2"}), SLOW_DOWN, 2.0),
        (limited(**{"retry-after": "0"}), SLOW_DOWN, 0.0),
        (limited(**{"retry-after": "60"}), SLOW_DOWN, 60.0),
        (limited(**{"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}), SLOW_DOWN, None),
        (limited(), SLOW_DOWN, None),
        (Fault("status", (1,)), OVERLOADED, None),
        (Fault("status", (1,), status=500, type="api_error", message="x"), f"{ANSWERED} 500 api_error: x", None),
        (Fault("status", (1,), status=408, type="timeout_error", message="x"),
         f"{ANSWERED} 408 timeout_error: x", None),
        (Fault("status", (1,), status=400, type="x", message="y", headers={"x-should-retry": "true"}),
         f"{ANSWERED} 400 x: y", None),
        (Fault("error_event", (1,), after_events=4, type="api_error", message="it broke"), BROKEN_OFF, None),
        (Fault("no_stop", (1,)), CUT, None),
        (Fault("drop", (1,)), "no answer from ", None),
        (Fault("drop", (1,), after_events=4), "no answer from ", None),
    ],
)  # fmt: skip
async def test_what_is_tried_again(service: Service, fault: Fault, reason: str, delay: float | None) -> None:
    service.says("all of it", fault=fault)
    reply = await service.call()
    [retry] = service.retries
    [slept] = service.clock.slept
    assert (reply.message.text, retry.attempt, retry.max_attempts) == ("all of it", 1, 4)
    assert retry.reason.startswith(reason)
    assert retry.delay_ms == round(slept * 1000)
    assert (slept == delay) if delay is not None else (0.375 <= slept <= 0.5)
    assert len(service.server.requests()) == 2


async def test_deltas_of_a_failed_attempt_have_an_id_of_their_own(service: Service) -> None:
    service.says("abcdef", chunk=3, fault=Fault("drop", (1,), after_events=4))
    reply = await service.call()
    first, retry, *second = service.seen
    assert (first.delta, type(retry), [delta.delta for delta in second]) == ("abc", Retrying, ["abc", "def"])
    assert {delta.message_id for delta in second} == {reply.message.id} != {first.message_id}


async def test_it_waits_longer_each_time_and_then_gives_up_in_words(service: Service) -> None:
    service.says("never", fault=Fault("status"))
    error = await service.fails(attempts=7)
    assert error == f"{OVERLOADED} (gave up after 7 attempts)"
    assert [(retry.attempt, retry.max_attempts) for retry in service.retries] == [(n, 7) for n in range(1, 7)]
    ceilings = [0.5, 1, 2, 4, 8, 8]
    assert [0.75 * top <= slept <= top for slept, top in zip(service.clock.slept, ceilings, strict=True)] == [True] * 6
    assert len(service.server.requests()) == 7


async def test_a_wait_above_the_limit_is_a_failure_that_says_so(service: Service) -> None:
    service.says("never", fault=limited(**{"retry-after": "61"}))
    assert await service.fails() == f"{SLOW_DOWN}; it asks to wait 61 s, more than the 60 s we wait"
    assert (service.retries, service.clock.slept, len(service.server.requests())) == ([], [], 1)


KEY = "; check the key in the environment (ANTHROPIC_API_KEY), or the one set in the editor"


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        (Fault("status", status=400, type="invalid_request_error", message="no"), "400 invalid_request_error: no"),
        (Fault("status", status=401, type="authentication_error", message="no"), f"401 authentication_error: no{KEY}"),
        (Fault("status", status=403, type="permission_error", message="no"), f"403 permission_error: no{KEY}"),
        (Fault("status", status=413, type="request_too_large", message="no"), "413 request_too_large: no"),
        (Fault("status", headers={"x-should-retry": "false"}), "529 overloaded_error: Overloaded"),
    ],
)
async def test_what_is_not_tried_again(service: Service, fault: Fault, error: str) -> None:
    service.says("never", fault=fault)
    assert await service.fails() == f"the model service answered {error}"
    assert (service.retries, len(service.server.requests())) == ([], 1)


async def test_an_error_in_the_stream_that_is_final_is_not_tried_again(service: Service) -> None:
    service.says("never", fault=Fault("error_event", type="invalid_request_error", message="no", after_events=3))
    assert await service.fails() == "the model service broke off its answer: invalid_request_error: no"
    assert len(service.server.requests()) == 1


async def test_a_stream_that_is_damaged_is_tried_again(service: Service) -> None:
    service.says("all of it", fault=Fault("malformed", (1,), after_events=3))
    assert (await service.call()).message.text == "all of it"
    assert [retry.reason[:38] for retry in service.retries] == ["the model service's answer is damaged:"]


async def test_nobody_there(service: Service) -> None:
    service.says("never")
    await service.server.__aexit__()
    error = await service.fails(attempts=2)
    assert error.startswith(f"no answer from {service.server.url}: ConnectError ")
    assert error.endswith(" (gave up after 2 attempts)")


async def test_a_request_that_cannot_be_made_is_not_tried_again(service: Service) -> None:
    service.says("never")
    bad = evolve(REQUEST, messages=[{"role": "user", "content": object()}])
    assert (await service.fails(request=bad)).startswith("the request could not be made: ")
    assert service.server.requests() == []


async def test_pings_are_no_events_and_cancellation_closes_the_socket(service: Service) -> None:
    service.says("word " * 5, chunk=5, fault=Fault("ping", after_events=4, every_ms=5))
    with anyio.move_on_after(5) as scope:
        async with anyio.create_task_group() as group:
            group.start_soon(service.call)
            await service.first_seen.wait()
            group.cancel_scope.cancel()
    assert not scope.cancelled_caught
    [entry] = service.server.requests()
    await service.server.wait_until(lambda: entry.closed_early_ns is not None, 2)
    assert [type(each) for each in service.seen] == [TextDelta]


async def test_a_changed_key_counts_for_the_next_request(service: Service) -> None:
    current = [Credentials("old", None, service.server.url)]
    client = MessagesApi(lambda: current[0])
    again = Service(service.server, client)
    again.server.set_script(Script((conversation(say("ok")),), invalid_keys=("old",)))
    assert (await again.fails()).startswith("the model service answered 401 ")
    current[0] = Credentials(None, "token", service.server.url)
    assert (await again.call()).message.text == "ok"
    await client.aclose()


@pytest.mark.parametrize(
    ("env", "api_key", "base_url", "expected"),
    [
        ({"ANTHROPIC_API_KEY": "e"}, None, None, Credentials("e", None, None)),
        ({"ANTHROPIC_API_KEY": "e"}, "k", None, Credentials("k", None, None)),
        ({"ANTHROPIC_AUTH_TOKEN": "t"}, "k", None, Credentials("k", None, None)),
        ({"ANTHROPIC_AUTH_TOKEN": "t"}, None, None, Credentials(None, "t", None)),
        ({"ANTHROPIC_API_KEY": "e", "ANTHROPIC_BASE_URL": "u"}, None, None, Credentials("e", None, "u")),
        ({"ANTHROPIC_API_KEY": "e", "ANTHROPIC_BASE_URL": "u"}, None, "b", Credentials("e", None, "b")),
    ],
)
def test_whose_credentials_count(
    env: Mapping[str, str], api_key: str | None, base_url: str | None, expected: Credentials
) -> None:
    assert credentials(env, api_key=api_key, base_url=base_url) == expected


@pytest.mark.parametrize("env", [{}, {"ANTHROPIC_API_KEY": ""}, {"ANTHROPIC_BASE_URL": "u"}])
def test_without_credentials_it_says_what_to_set(env: Mapping[str, str]) -> None:
    with pytest.raises(MissingCredentials, match=r"set ANTHROPIC_API_KEY \(or ANTHROPIC_AUTH_TOKEN\)"):
        credentials(env, api_key=None, base_url=None)


def test_secrets_are_not_shown() -> None:
    assert repr(Credentials("secret", "secret", "http://u")) == "Credentials(provider='anthropic', base_url='http://u')"


def test_waits_are_bounded() -> None:
    assert messages_api.MAX_RETRY_AFTER == 60.0

"""The only module, beside `providers`, that knows the anthropic SDK: one streaming request, its errors, the retries.

Retries are ours (`max_retries=0`), so that progress, budget and cancellation stay visible and a server's `retry-after`
has a limit. Events are read raw: the SDK's typed events cost ten times as much and are taken apart again at once.
"""

from __future__ import annotations

import importlib
import random
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from functools import cache
from typing import TYPE_CHECKING, Any

from anyio import fail_after, to_thread
from attrs import define, field

from agent_core.errors import ContextFull, FatalModelError, RetryableModelError
from agent_core.events import Retrying
from agent_core.ids import new_message_id
from agent_core.messages import ModelReply
from agent_core.model.accumulate import Accumulator, Delta
from agent_core.model.providers import Credentials, open_client
from agent_core.ports import Clock, ModelClient, ModelRequest

if TYPE_CHECKING:
    from anthropic import AsyncAnthropic

MAX_RETRY_AFTER = 60.0
"""Seconds. A longer wait is a failure that says so, rather than an agent that seems to hang."""

_RETRIED_STATUS = {408, 409, 425, 429}
_RETRIED_TYPES = {"overloaded_error", "rate_limit_error", "api_error", "timeout_error"}
_CONNECT_SECONDS, _READ_SECONDS = 5.0, 300.0


@define
class MessagesApi:
    """ModelClient over the SDK. One HTTP client for all agents, and another after a change of credentials; closed by
    `aclose`."""

    _credentials: Callable[[], Credentials]
    _client: AsyncAnthropic | None = None
    _used: Credentials | None = None
    _replaced: list[AsyncAnthropic] = field(factory=list)

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Mapping[str, Any], None]:
        if not _load_sdk.cache_info().currsize:
            await to_thread.run_sync(_load_sdk, abandon_on_cancel=True)
        import anthropic
        import httpx2

        try:
            async with self._open().messages.with_streaming_response.create(**self._arguments(request)) as response:
                async for event in anthropic.AsyncStream.raw_events(response.http_response):
                    if event.event is None or event.event == "ping" or not event.data:
                        continue
                    data = _parsed(event)
                    if event.event == "error":
                        raise _mid_stream(data)
                    yield data
        except anthropic.APIStatusError as error:
            raise _from_status(error) from error
        except anthropic.APIConnectionError as error:
            raise RetryableModelError(self._unreachable(error.__cause__ or error)) from error
        except (httpx2.HTTPError, httpx2.StreamError) as error:
            raise RetryableModelError(self._unreachable(error)) from error
        except (anthropic.AnthropicError, ValueError, TypeError) as error:
            raise FatalModelError(f"the request could not be made: {error}") from error

    async def aclose(self) -> None:
        for client in (*self._replaced, self._client):
            if client is not None:
                await client.close()
        self._client = None

    def _arguments(self, request: ModelRequest) -> dict[str, Any]:
        model = self._credentials().model_id(request.model.removesuffix("[1m]"))
        arguments: dict[str, Any] = {
            "model": model,
            "max_tokens": request.max_tokens,
            "messages": request.messages,
            "system": request.system,
            "stream": True,
        }
        if request.tools:
            arguments["tools"] = request.tools
        if request.thinking is not None:
            arguments["thinking"] = request.thinking
        return arguments

    def _open(self) -> AsyncAnthropic:
        import httpx2
        from anthropic import DefaultAioHttpClient

        found = self._credentials()
        if self._client is None or found != self._used:
            if self._client is not None:
                self._replaced.append(self._client)  # others may still be reading from it
            timeout = httpx2.Timeout(_READ_SECONDS, connect=_CONNECT_SECONDS)
            self._used, self._client = found, open_client(found, DefaultAioHttpClient(timeout=timeout))
        return self._client

    def _unreachable(self, error: BaseException) -> str:
        where = self._client.base_url if self._client else "the model service"
        return f"no answer from {where}: {type(error).__name__} {error}".rstrip()


async def listed_models(found: Credentials, seconds: float) -> frozenset[str] | None:
    """The ids that the service lists, None when it does not say so within that time: many gateways have no list."""
    import anthropic
    import httpx2

    try:
        async with open_client(found, anthropic.DefaultAioHttpClient(timeout=seconds)) as client:
            with fail_after(seconds):
                return frozenset([model.id async for model in client.models.list(limit=1000)])
    except (anthropic.AnthropicError, httpx2.HTTPError, TimeoutError, ValueError, TypeError, AttributeError):
        return None


@cache
def _load_sdk() -> None:
    """Takes seconds, and must not be done on the loop, where everything would wait for it, a stop included."""
    for name in ("anthropic", "httpx2"):
        importlib.import_module(name)


async def call_model(
    client: ModelClient,
    request: ModelRequest,
    *,
    clock: Clock,
    max_attempts: int,
    on_begin: Callable[[], None] = lambda: None,
    on_delta: Callable[[Delta], None],
    on_retry: Callable[[Retrying], None],
) -> ModelReply:
    """One complete reply. Each attempt has its own message id, so that deltas of a failed one can be told apart.
    `on_begin` is called when an answer has begun, and again with each of its events.

    RetryableModelError after the last attempt, FatalModelError and MissingCredentials at once.
    """
    for attempt in range(1, max_attempts + 1):
        accumulator = Accumulator(new_message_id())
        try:
            async with aclosing(client.stream(request)) as events:
                async for event in events:
                    on_begin()
                    if (delta := accumulator.feed(event)) is not None:
                        on_delta(delta)
            return accumulator.reply()
        except RetryableModelError as error:
            delay = error.retry_after if error.retry_after is not None else _backoff(attempt)
            if attempt == max_attempts or delay > MAX_RETRY_AFTER:
                raise _gave_up(error, attempt, delay) from error
            on_retry(Retrying(attempt, max_attempts, round(delay * 1000), str(error)))
            await clock.sleep(delay)
    raise AssertionError("max_attempts is at least 1")


def _from_status(error: Any) -> RetryableModelError | FatalModelError:
    status, kind = error.status_code, getattr(error, "type", None)
    text = f"the model service answered {status} {kind or ''}: {_words(error.body) or error.message}"
    forced = error.response.headers.get("x-should-retry")
    if forced == "true" or (forced != "false" and (status in _RETRIED_STATUS or status >= 500)):
        return RetryableModelError(text, _retry_after(error.response.headers))
    if status == 413 or (status == 400 and "prompt is too long" in text):
        return ContextFull(text)
    if status in (401, 403):
        text += "; check the key in the environment (ANTHROPIC_API_KEY), or the one set in the editor"
    return FatalModelError(text)


def _parsed(event: Any) -> Any:
    try:
        return event.json()
    except ValueError as error:
        raise RetryableModelError(f"the model service's answer is damaged: {error}") from error


def _mid_stream(data: Any) -> RetryableModelError | FatalModelError:
    error = data.get("error", {}) if isinstance(data, dict) else {}
    kind = error.get("type", "error")
    text = f"the model service broke off its answer: {kind}: {error.get('message', '')}"
    return RetryableModelError(text) if kind in _RETRIED_TYPES else FatalModelError(text)


def _words(body: object) -> str:
    if isinstance(body, dict) and isinstance(body.get("error"), dict):
        return str(body["error"].get("message", ""))
    return ""


def _retry_after(headers: Mapping[str, str]) -> float | None:
    try:
        if milliseconds := headers.get("retry-after-ms"):
            return max(0.0, float(milliseconds) / 1000)
        seconds = headers.get("retry-after")
        return max(0.0, float(seconds)) if seconds else None
    except ValueError:
        return None


def _backoff(attempt: int) -> float:
    ceiling: float = min(0.5 * 2 ** (attempt - 1), 8.0)
    return ceiling * random.uniform(0.75, 1.0)


def _gave_up(error: RetryableModelError, attempt: int, delay: float) -> FatalModelError:
    if delay > MAX_RETRY_AFTER:
        return FatalModelError(f"{error}; it asks to wait {delay:.0f} s, more than the {MAX_RETRY_AFTER:.0f} s we wait")
    return FatalModelError(f"{error} (gave up after {attempt} attempts)")

"""A real model behind an OpenAI-compatible endpoint: hosted, or a local llama.cpp, vLLM or Ollama server.

What the endpoint says is told apart: an infrastructure failure leaves the unit owed, a context that does not fit is
the strategy's result, and refusals and empty answers are data. Reading answers, the response cache, the rate limiter
and the budget have modules of their own.
"""

from __future__ import annotations

import importlib
import json
import os
import re
import time
import weakref
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from typing import TYPE_CHECKING, TypeVar, cast
from urllib.parse import urlsplit

from compaction_lab.accounting.usage import DIALECTS
from compaction_lab.conversation.messages import JSON
from compaction_lab.conversation.tokens import TokenCounter, tokenizer
from compaction_lab.conversation.wire import to_openai, tools_to_openai
from compaction_lab.errors import ConfigurationError, ContextOverflow, ModelError
from compaction_lab.models.base import ModelReply, ModelRequest
from compaction_lab.models.openai_replies import MalformedAnswer, Payload, joined, read_answer, read_reply
from compaction_lab.models.patience import LONGEST_ASKED_S, asked_pause_s, backoff_s, passes
from compaction_lab.models.secrets import redacted

if TYPE_CHECKING:
    from openai import OpenAI

    from compaction_lab.models.limiter import RateLimiter

T = TypeVar("T")
_OVERFLOW = re.compile(
    r"context[_ ]length|context window|maximum context|context[_ ]size|prompt is too long|input is too long"
    r"|too many (?:input )?tokens|input token count|reduce the length of the messages",
    re.IGNORECASE,
)
"""How OpenAI, Anthropic, Gemini, vLLM and llama.cpp word that a prompt does not fit."""

_SENT = ("role", "content", "name", "tool_calls", "tool_call_id", "refusal")
_REFUSING = (400, 413, 422)


@dataclass(frozen=True)
class OpenAICompatible:
    """A chat-completions endpoint as a model.

    Parameters
    ----------
    model
        The endpoint's name of the model.
    base_url
        Root of the API, such as ``http://127.0.0.1:8080/v1``; empty means OpenAI's own.
    key_variable
        Environment variable that holds the key; empty or unset sends a placeholder, as local servers want none.
    temperature, top_p, max_output_tokens, reasoning_effort
        Sent when not ``None``; recorded in the cell's configuration.
    send_seed
        Whether the endpoint takes a seed (Gemini's does not).
    structured
        Whether it takes ``response_format``; without it a judge's answer is parsed from free text.
    timeout_s
        Of one attempt.
    retries
        Attempts beyond the first, with jittered exponential backoff, or after the pause that the server asks for.
    stream
        Stream the answer, which measures the time to the first token.
    dialect
        How the endpoint words usage (:mod:`compaction_lab.accounting.usage`).
    extra_body
        Further fields of the request, such as ``{"cache_prompt": false}`` for llama.cpp.
    limiter
        Lets every attempt wait for its turn, and hears of the pauses that the server asks for.

    Raises
    ------
    ConfigurationError
        The dialect is unknown, or a number out of range; ``base_url`` is no web address, or holds a password: keys
        come from the environment only.
    """

    model: str
    base_url: str = ""
    key_variable: str = "OPENAI_API_KEY"
    temperature: float | None = 0.0
    top_p: float | None = None
    max_output_tokens: int | None = 1024
    reasoning_effort: str | None = None
    send_seed: bool = True
    structured: bool = True
    timeout_s: float = 120.0
    retries: int = 5
    stream: bool = False
    dialect: str = "openai_chat"
    extra_body: Mapping[str, JSON] = field(default_factory=dict)
    limiter: RateLimiter | None = field(default=None, repr=False, compare=False)
    simulated: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        """Check the address, the dialect and the numbers."""
        if self.retries < 0 or self.timeout_s <= 0:
            raise ConfigurationError(
                f"retries={self.retries}, timeout_s={self.timeout_s}; expected at least no retry and some time"
            )
        if self.dialect not in DIALECTS:
            raise ConfigurationError(f"dialect={self.dialect!r}; expected one of {', '.join(DIALECTS)}")
        if self.base_url:
            parts = urlsplit(self.base_url)
            if parts.scheme not in ("http", "https") or not parts.hostname:
                msg = f"base_url={self.base_url!r}; expected the root of an API such as http://127.0.0.1:8080/v1"
                raise ConfigurationError(msg)
            if parts.username or parts.password or parts.query:
                msg = (
                    f"base_url of {parts.hostname} holds a password or a query; put the key into an environment "
                    "variable and name it with key_variable="
                )
                raise ConfigurationError(msg)

    @property
    def name(self) -> str:
        """What rows and manifests call it."""
        return self.model

    @property
    def endpoint(self) -> str:
        """Where it lives, for keys and manifests; never holds the key."""
        return self.base_url or "openai"

    def output_limit(self, request: ModelRequest) -> int | None:
        """Return how long the answer to a request may be, in tokens."""
        limits = [limit for limit in (request.max_output_tokens, self.max_output_tokens) if limit is not None]
        return min(limits) if limits else None

    def body(self, request: ModelRequest) -> dict[str, JSON]:
        """Return the request as JSON: all that can change the answer, in one place for the cache's key."""
        body: dict[str, JSON] = {
            "model": self.model,
            "messages": [cast("JSON", _sendable(to_openai(message))) for message in request.messages],
        }
        # OpenAI's newer models refuse the old name of the limit, and other servers do not know the new one.
        limit_field = "max_tokens" if self.base_url else "max_completion_tokens"
        optional: dict[str, JSON] = {
            "tools": tools_to_openai(request.tools) if request.tools else None,
            "seed": request.seed % 2**31 if self.send_seed else None,
            "temperature": self.temperature,
            "top_p": self.top_p,
            limit_field: self.output_limit(request),
            "reasoning_effort": self.reasoning_effort,
            "response_format": request.response_format if self.structured else None,
        }
        return body | {key: value for key, value in optional.items() if value is not None} | dict(self.extra_body)

    def input_tokens(self, request: ModelRequest) -> int:
        """Return about how many tokens a request sends (o200k_base), tool definitions included."""
        return _counter().request(request.messages, request.tools)

    def __call__(self, request: ModelRequest) -> ModelReply:
        """Ask the endpoint.

        Raises
        ------
        ContextOverflow
            The prompt does not fit the model's window.
        ModelError
            No usable reply came, also after retries: the network, the server, or an answer that is not one.
        """
        tokens = 0
        if self.limiter is not None and self.limiter.limits.tokens_per_minute is not None:
            tokens = self.input_tokens(request) + (self.output_limit(request) or 0)
        return self.patiently(lambda: self._ask(request), tokens)

    def patiently(self, call: Callable[[], T], tokens: int = 0) -> T:
        """Make a call to the API, and again after a failure that passes.

        Parameters
        ----------
        call
            One attempt, which may raise what the openai library raises.
        tokens
            What it may take of the tokens a minute.

        Raises
        ------
        ContextOverflow
            The prompt does not fit the model's window.
        ModelError
            It failed for good, or as often as it may.
        """
        import openai

        failing: tuple[type[Exception], ...] = (MalformedAnswer, openai.APIError, *_transport_errors())
        # What is raised names no cause: the library's errors quote the server, and servers quote the key.
        for attempt in range(self.retries + 1):
            if self.limiter is not None:
                self.limiter.wait(tokens)
            try:
                return call()
            except failing as error:
                failure, asked_s = self._failure(error), _asked_pause_s(error)
                if not _is_passing(error) or isinstance(failure, ContextOverflow):
                    raise failure from None
            if asked_s is not None and asked_s > LONGEST_ASKED_S:
                raise ModelError(f"{failure} (the server asks to come back in {asked_s:,.0f} s)")
            if attempt < self.retries:
                self._pause(attempt, asked_s)
        raise ModelError(f"{failure} (no usable answer, retries={self.retries})")

    def _pause(self, attempt: int, asked_s: float | None) -> None:
        if asked_s is None:
            time.sleep(backoff_s(attempt))
        elif self.limiter is not None:
            self.limiter.hold(asked_s)
        else:
            time.sleep(asked_s)

    def _ask(self, request: ModelRequest) -> ModelReply:
        body = self.body(request)
        extra = {key: body.pop(key) for key in list(body) if key in self.extra_body}
        completions = self.client.chat.completions
        started = time.perf_counter()
        first_s: float | None = None
        if self.stream:
            options = {"stream": True, "stream_options": {"include_usage": True}}
            with completions.create(**body, **options, extra_body=extra or None) as stream:  # type: ignore[call-overload]
                chunks = (cast("Payload", chunk.model_dump(exclude_unset=True)) for chunk in stream)
                payload, first_s = joined(self._without_key(chunks), lambda: time.perf_counter() - started)
        else:
            raw = completions.with_raw_response.create(**body, extra_body=extra or None)  # type: ignore[call-overload]
            payload = read_answer(self.clean(raw.http_response.content.decode("utf-8", "replace")))
        latency_s = time.perf_counter() - started
        reply = read_reply(payload, self.dialect, id_prefix=f"call_{len(request.messages)}_")
        return replace(reply, latency_s=latency_s, first_token_s=first_s)

    def _without_key(self, chunks: Iterator[Payload]) -> Iterator[Payload]:
        import openai

        try:
            for chunk in chunks:
                text = json.dumps(chunk)
                clean = self.clean(text)
                yield chunk if clean == text else json.loads(clean)
        except openai.APIConnectionError as error:  # the library retries a request, never a stream under way
            raise MalformedAnswer(f"the stream broke off: {error.__cause__ or error}") from None

    def _failure(self, error: Exception) -> ModelError:
        """Return what went wrong as the lab's own error: where, and in one line, without the key."""
        cause = ""
        if _is_unreachable(error):
            cause = f": {error.__cause__}" if error.__cause__ else ""
        status = getattr(error, "status_code", None)
        body = getattr(error, "body", None)
        text = json.dumps(body) if body else str(error).rstrip(".") + cause
        return self.refused(text or type(error).__name__, status)

    def refused(self, text: str, status: int | None = None) -> ModelError:
        """Return the error that a server's words are: a context that does not fit, or a failure.

        Parameters
        ----------
        text
            What it said.
        status
            Of the HTTP answer, if it was one.
        """
        said = self.clean(" ".join(text.split()))[:500]
        overflows = status in (None, *_REFUSING) and _OVERFLOW.search(said)
        where = f"model {self.model} at {self.endpoint}: {f'HTTP {status}: ' if status else ''}"
        return (ContextOverflow if overflows else ModelError)(f"{where}{said}")

    def clean(self, text: str) -> str:
        """Return a server's text without the key."""
        return redacted(text, (self.key_variable,))

    @cached_property
    def client(self) -> OpenAI:
        """The library's client, which never retries by itself.

        Raises
        ------
        ConfigurationError
            The endpoint is OpenAI's own and there is no key.
        """
        from openai import OpenAI

        key = os.environ.get(self.key_variable, "").strip() if self.key_variable else ""
        if not key and not self.base_url:
            raise ConfigurationError(
                f"model {self.model}: no key in the environment variable {self.key_variable or '(none named)'}; "
                "set it, or give base_url= of a server that wants none"
            )
        # An empty address would make the library look into the environment for another.
        address = self.base_url or "https://api.openai.com/v1"
        client = OpenAI(api_key=key or "none", base_url=address, timeout=self.timeout_s, max_retries=0)
        weakref.finalize(self, client.close)
        return client


def _sendable(message: Mapping[str, JSON]) -> dict[str, JSON]:
    """Return a message with the fields every endpoint takes: recordings keep others, which strict ones refuse.

    A picture or file whose content was not recorded is named instead.
    """
    kept = {key: value for key, value in message.items() if key in _SENT}
    content = kept.get("content")
    if isinstance(content, list):
        kept["content"] = [
            {"type": "text", "text": f"[{part.get('type')}]"} if isinstance(part, Mapping) and "media" in part else part
            for part in content
        ]
    return kept


@cache
def _counter() -> TokenCounter:
    return TokenCounter(tokenizer("o200k_base"))


def _is_unreachable(error: Exception) -> bool:
    import openai

    return isinstance(error, openai.APIConnectionError)


def _is_passing(error: Exception) -> bool:
    """Whether a failure may be gone at the next attempt: all but a server's refusal that will stay."""
    import openai

    return not isinstance(error, openai.APIStatusError) or passes(error.status_code, error.response.headers)


def _asked_pause_s(error: Exception) -> float | None:
    import openai

    return asked_pause_s(error.response.headers) if isinstance(error, openai.APIStatusError) else None


@cache
def _transport_errors() -> tuple[type[Exception], ...]:
    """Return what the library's own transport raises in the middle of a stream: it was httpx and became httpx2."""
    found: list[type[Exception]] = []
    for name in ("httpx", "httpx2"):
        try:
            found.append(importlib.import_module(name).HTTPError)
        except ModuleNotFoundError:
            continue
    return tuple(found)

"""A real model behind an OpenAI-compatible endpoint: hosted, or a local llama.cpp, vLLM or Ollama server.

What the endpoint says is told apart: an infrastructure failure leaves the unit owed, a context that does not fit is
the strategy's result, and refusals and empty answers are data. Reading answers, the response cache, the rate limiter
and the budget have modules of their own.
"""

from __future__ import annotations

import importlib
import json
import os
import random
import re
import time
import weakref
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from typing import TYPE_CHECKING, cast
from urllib.parse import urlsplit

from compaction_lab.conversation.messages import JSON
from compaction_lab.conversation.wire import to_openai, tools_to_openai
from compaction_lab.errors import ConfigurationError, ContextOverflow, ModelError
from compaction_lab.models.base import ModelReply, ModelRequest
from compaction_lab.models.openai_replies import MalformedAnswer, Payload, joined, read_answer, read_reply
from compaction_lab.models.secrets import redacted

if TYPE_CHECKING:
    from openai import OpenAI

_OVERFLOW = re.compile(
    r"context[_ ]length|context window|maximum context|context[_ ]size|prompt is too long|input is too long"
    r"|too many (?:input )?tokens|input token count|reduce the length of the messages",
    re.IGNORECASE,
)
"""How OpenAI, Anthropic, Gemini, vLLM and llama.cpp word that a prompt does not fit."""

_SENT = ("role", "content", "name", "tool_calls", "tool_call_id", "refusal")
_REFUSING = (400, 413, 422)
_PAUSE_S, _LONGEST_PAUSE_S = 0.1, 8.0


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
        Attempts beyond the first, with jittered backoff that honours Retry-After (the openai library's own).
    stream
        Stream the answer, which measures the time to the first token.
    dialect
        How the endpoint words usage (:mod:`compaction_lab.accounting.usage`).
    extra_body
        Further fields of the request, such as ``{"cache_prompt": false}`` for llama.cpp.

    Raises
    ------
    ConfigurationError
        ``base_url`` is no web address, or holds a password: keys come from the environment only.
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
    simulated: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        """Check the address."""
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

    def __call__(self, request: ModelRequest) -> ModelReply:
        """Ask the endpoint.

        Raises
        ------
        ContextOverflow
            The prompt does not fit the model's window.
        ModelError
            No usable reply came, also after retries: the network, the server, or an answer that is not one.
        """
        import openai

        broken: tuple[type[Exception], ...] = (MalformedAnswer, openai.APIError, *_transport_errors())
        # What is raised names no cause: the library's errors quote the server, and servers quote the key.
        last = ""
        for attempt in range(self.retries + 1):
            try:
                return self._ask(request)
            except openai.APIStatusError as error:
                raise self._refusal(error) from None
            except openai.APIConnectionError as error:
                cause = f": {error.__cause__}" if error.__cause__ else ""
                last = f"{self._reason(error).rstrip('.')}{self._clean(cause)}"
                break
            except broken as error:
                last = self._reason(error) or type(error).__name__
                if _OVERFLOW.search(last):
                    raise ContextOverflow(f"{self._place()}: {last}") from None
                if attempt < self.retries:
                    time.sleep(min(_LONGEST_PAUSE_S, _PAUSE_S * 2**attempt) * random.uniform(0.75, 1.25))  # noqa: S311
        raise ModelError(f"{self._place()}: {last} (no usable answer in {self.retries + 1} attempts)")

    def _ask(self, request: ModelRequest) -> ModelReply:
        body = self.body(request)
        extra = {key: body.pop(key) for key in list(body) if key in self.extra_body}
        completions = self._client.chat.completions
        started = time.perf_counter()
        first_s: float | None = None
        if self.stream:
            options = {"stream": True, "stream_options": {"include_usage": True}}
            with completions.create(**body, **options, extra_body=extra or None) as stream:  # type: ignore[call-overload]
                chunks = (cast("Payload", chunk.model_dump(exclude_unset=True)) for chunk in stream)
                payload, first_s = joined(self._without_key(chunks), lambda: time.perf_counter() - started)
        else:
            raw = completions.with_raw_response.create(**body, extra_body=extra or None)  # type: ignore[call-overload]
            payload = read_answer(self._clean(raw.http_response.content.decode("utf-8", "replace")))
        latency_s = time.perf_counter() - started
        reply = read_reply(payload, self.dialect, id_prefix=f"call_{len(request.messages)}_")
        return replace(reply, latency_s=latency_s, first_token_s=first_s)

    def _without_key(self, chunks: Iterator[Payload]) -> Iterator[Payload]:
        import openai

        try:
            for chunk in chunks:
                text = json.dumps(chunk)
                clean = self._clean(text)
                yield chunk if clean == text else json.loads(clean)
        except openai.APIConnectionError as error:  # the library retries a request, never a stream under way
            raise MalformedAnswer(f"the stream broke off: {error.__cause__ or error}") from None

    def _refusal(self, error: Exception) -> ModelError:
        text = self._reason(error)
        overflows = getattr(error, "status_code", 0) in _REFUSING and _OVERFLOW.search(text)
        return (ContextOverflow if overflows else ModelError)(f"{self._place()}: {text}")

    def _reason(self, error: Exception) -> str:
        """Return what went wrong in one line, without the key."""
        status = getattr(error, "status_code", None)
        body = getattr(error, "body", None)
        text = " ".join((json.dumps(body) if body else str(error)).split())
        return f"{f'HTTP {status}: ' if status else ''}{self._clean(text)[:500]}"

    def _clean(self, text: str) -> str:
        return redacted(text, (self.key_variable,))

    def _place(self) -> str:
        return f"model {self.model} at {self.endpoint}"

    @cached_property
    def _client(self) -> OpenAI:
        from openai import OpenAI

        key = os.environ.get(self.key_variable, "").strip() if self.key_variable else ""
        if not key and not self.base_url:
            raise ConfigurationError(
                f"model {self.model}: no key in the environment variable {self.key_variable or '(none named)'}; "
                "set it, or give base_url= of a server that wants none"
            )
        # An empty address would make the library look into the environment for another.
        address = self.base_url or "https://api.openai.com/v1"
        client = OpenAI(api_key=key or "none", base_url=address, timeout=self.timeout_s, max_retries=self.retries)
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
def _transport_errors() -> tuple[type[Exception], ...]:
    """Return what the library's own transport raises in the middle of a stream: it was httpx and became httpx2."""
    found: list[type[Exception]] = []
    for name in ("httpx", "httpx2"):
        try:
            found.append(importlib.import_module(name).HTTPError)
        except ModuleNotFoundError:
            continue
    return tuple(found)

"""A real model behind an OpenAI-compatible endpoint: hosted, or a local llama.cpp, vLLM or Ollama server.

What the endpoint says is told apart: an infrastructure failure leaves the unit owed, a context that does not fit is
the strategy's result, and refusals and empty answers are data. The response cache and the rate limiter have modules of
their own.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, cast

from compaction_lab.accounting.usage import read_usage
from compaction_lab.conversation.messages import JSON, ToolCall, Usage
from compaction_lab.conversation.wire import to_openai, tools_to_openai
from compaction_lab.errors import ConfigurationError, ContextOverflow, ModelError
from compaction_lab.models.base import ModelReply, ModelRequest

if TYPE_CHECKING:
    from openai import OpenAI

_OVERFLOW = re.compile(
    r"context[_ ]length|context window|maximum context|context size|exceeds? the (?:available|maximum|model)"
    r"|prompt is too long|too many (?:input )?tokens|input (?:token count|is too long)|reduce the length",
    re.IGNORECASE,
)
"""How OpenAI, Anthropic, Gemini, vLLM and llama.cpp word that a prompt does not fit."""


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
    """

    model: str
    base_url: str = ""
    key_variable: str = "OPENAI_API_KEY"
    temperature: float | None = 0.0
    top_p: float | None = None
    max_output_tokens: int | None = 1024
    reasoning_effort: str | None = None
    timeout_s: float = 120.0
    retries: int = 5
    stream: bool = False
    dialect: str = "openai_chat"
    extra_body: Mapping[str, JSON] = field(default_factory=dict)
    simulated: bool = field(default=False, init=False)

    @property
    def name(self) -> str:
        """What rows and manifests call it."""
        return self.model

    @property
    def endpoint(self) -> str:
        """Where it lives, for keys and manifests; never holds the key."""
        return self.base_url or "openai"

    def body(self, request: ModelRequest) -> dict[str, JSON]:
        """Return the request as JSON: all that can change the answer, in one place for the cache's key."""
        body: dict[str, JSON] = {
            "model": self.model,
            "messages": [cast("JSON", to_openai(message)) for message in request.messages],
            "seed": request.seed % 2**31,
        }
        limits = [limit for limit in (request.max_output_tokens, self.max_output_tokens) if limit is not None]
        optional: dict[str, JSON] = {
            "tools": tools_to_openai(request.tools) if request.tools else None,
            "temperature": self.temperature,
            "top_p": self.top_p,
            "max_tokens": min(limits) if limits else None,
            "reasoning_effort": self.reasoning_effort,
            "response_format": request.response_format,
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

        last = ""
        for attempt in range(self.retries + 1):
            try:
                return self._ask(request)
            except openai.APIStatusError as error:
                self._refuse(error)
            except (openai.APIConnectionError, openai.APITimeoutError) as error:
                raise ModelError(f"{self._place()}: {self._reason(error)} after {self.retries + 1} attempts") from error
            except (_Malformed, openai.APIError, json.JSONDecodeError, UnicodeDecodeError) as error:
                last = self._reason(error) or type(error).__name__
                time.sleep(min(8.0, 0.1 * 2**attempt))
        raise ModelError(f"{self._place()}: {last}; {self.retries + 1} attempts, none gave a usable answer")

    def _ask(self, request: ModelRequest) -> ModelReply:
        body = self.body(request)
        extra = {key: body.pop(key) for key in list(body) if key in self.extra_body}
        started = time.perf_counter()
        if self.stream:
            payload, first_s = self._streamed(body, extra, started)
        else:
            completion = self._client.chat.completions.create(**body, extra_body=extra or None)  # type: ignore[call-overload]
            payload, first_s = cast("dict[str, JSON]", completion.model_dump()), None
        latency_s = time.perf_counter() - started
        return self._reply(payload, latency_s, first_s)

    def _streamed(
        self, body: dict[str, JSON], extra: dict[str, JSON], started: float
    ) -> tuple[dict[str, JSON], float | None]:
        """Return the chunks of a stream put together as one completion, and the time to the first token."""
        text, calls, finish, usage, first_s = [], {}, None, None, None  # type: ignore[var-annotated]
        stream = self._client.chat.completions.create(  # type: ignore[call-overload]
            **body, stream=True, stream_options={"include_usage": True}, extra_body=extra or None
        )
        for chunk in stream:
            if chunk.usage is not None:
                usage = chunk.usage.model_dump()
            for choice in chunk.choices:
                first_s = first_s or time.perf_counter() - started
                text.append(choice.delta.content or "")
                for part in choice.delta.tool_calls or ():
                    call = calls.setdefault(part.index, {"id": "", "function": {"name": "", "arguments": ""}})
                    call["id"] = call["id"] or part.id or ""
                    if part.function is not None:
                        call["function"]["name"] += part.function.name or ""
                        call["function"]["arguments"] += part.function.arguments or ""
                finish = choice.finish_reason or finish
        if finish is None:
            raise _Malformed("the stream ended before the answer did")
        message: dict[str, JSON] = {"content": "".join(text), "tool_calls": [calls[at] for at in sorted(calls)]}
        return {"choices": [{"message": message, "finish_reason": finish}], "usage": usage}, first_s

    def _reply(self, payload: Mapping[str, JSON], latency_s: float, first_s: float | None) -> ModelReply:
        choices = payload.get("choices")
        choice = choices[0] if isinstance(choices, list) and choices else None
        message = choice.get("message") if isinstance(choice, Mapping) else None
        if not isinstance(choice, Mapping) or not isinstance(message, Mapping):
            raise _Malformed(f"the answer has no choices: {str(payload)[:200]}")
        refusal = message.get("refusal")
        content = message.get("content")
        calls = message.get("tool_calls")
        return ModelReply(
            str(content or refusal or ""),
            tuple(_call(call) for call in calls if isinstance(call, Mapping)) if isinstance(calls, list) else (),
            "refusal" if refusal else str(choice.get("finish_reason") or "stop"),
            self._usage(payload.get("usage")),
            latency_s,
            first_token_s=first_s,
        )

    def _usage(self, payload: JSON) -> Usage | None:
        reading = read_usage(payload, self.dialect) if isinstance(payload, Mapping) else None
        return None if reading is None else reading.usage

    def _refuse(self, error: Exception) -> None:
        text = self._reason(error)
        if getattr(error, "status_code", 0) in (400, 413, 422) and _OVERFLOW.search(text):
            raise ContextOverflow(f"{self._place()}: {text}") from error
        raise ModelError(f"{self._place()}: {text}") from error

    def _reason(self, error: Exception) -> str:
        """Return what went wrong in one line, without the key, which servers like to repeat."""
        status = getattr(error, "status_code", None)
        body = getattr(error, "body", None)
        text = " ".join((json.dumps(body) if body else str(error)).split())
        key = os.environ.get(self.key_variable, "") if self.key_variable else ""
        if key:
            text = text.replace(key, "***")
        return f"{f'HTTP {status}: ' if status else ''}{text[:500]}"

    def _place(self) -> str:
        return f"model {self.model} at {self.endpoint}"

    @cached_property
    def _client(self) -> OpenAI:
        from openai import OpenAI

        key = os.environ.get(self.key_variable, "") if self.key_variable else ""
        if not key and not self.base_url:
            raise ConfigurationError(
                f"model {self.model}: no key in the environment variable {self.key_variable or '(none named)'}; "
                "set it, or give model.base_url= of a server that wants none"
            )
        return OpenAI(
            api_key=key or "none", base_url=self.base_url or None, timeout=self.timeout_s, max_retries=self.retries
        )


class _Malformed(Exception):
    """The server answered, but not with a completion."""


def _call(call: Mapping[str, JSON]) -> ToolCall:
    function = call.get("function")
    named = function if isinstance(function, Mapping) else {}
    return ToolCall(str(call.get("id") or ""), str(named.get("name") or ""), str(named.get("arguments") or ""))

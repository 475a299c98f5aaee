"""The client against a server that fails in every way, over real HTTP: what each fault becomes."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from compaction_lab.conversation.messages import ToolDefinition, system, user
from compaction_lab.errors import ConfigurationError, ContextOverflow, ModelError
from compaction_lab.models.base import ModelReply, ModelRequest
from compaction_lab.models.openai_compatible import OpenAICompatible
from tests.models.faulty_server import USAGE, Fault, FaultyServer, completion, error, running

REQUEST = ModelRequest((system("Be brief."), user("How much RAM?")), seed=2**40 + 7, max_output_tokens=50)
SOON = {"Retry-After-Ms": "10"}


@pytest.fixture
def server() -> Iterator[FaultyServer]:
    with running() as started:
        yield started


def client(server: FaultyServer, **settings: object) -> OpenAICompatible:
    return OpenAICompatible("m", server.url, **{"retries": 1, "timeout_s": 5.0, "key_variable": "LAB_KEY", **settings})


def test_the_request_says_all_that_can_change_the_answer(server: FaultyServer) -> None:
    tool = ToolDefinition("look", "Look up.", {"type": "object", "properties": {}})
    model = client(server, top_p=0.5, extra_body={"cache_prompt": False})
    model(ModelRequest(REQUEST.messages, tools=(tool,), seed=REQUEST.seed, max_output_tokens=50))
    (body,) = server.bodies
    assert body["messages"] == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "How much RAM?"},
    ]
    assert body["tools"][0]["function"]["name"] == "look"
    settings = {name: body[name] for name in ("model", "seed", "temperature", "top_p", "max_tokens", "cache_prompt")}
    assert settings == {
        "model": "m",
        "seed": 7,
        "temperature": 0.0,
        "top_p": 0.5,
        "max_tokens": 50,
        "cache_prompt": False,
    }
    assert body == model.body(ModelRequest(REQUEST.messages, tools=(tool,), seed=REQUEST.seed, max_output_tokens=50))


@pytest.mark.parametrize("stream", [False, True])
def test_an_answer_has_text_calls_usage_and_time(server: FaultyServer, *, stream: bool) -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"name": "Zoë"}'}}
    usage = USAGE | {"prompt_tokens_details": {"cached_tokens": 64}}
    server.answer = lambda _: completion("It has 32 GB.", tool_calls=[call], usage=usage)
    reply = client(server, stream=stream)(REQUEST)
    assert (reply.text.strip(), reply.finish) == ("It has 32 GB.", "tool_calls")
    assert [(call.id, call.name, json.loads(call.arguments)) for call in reply.calls] == [
        ("c1", "look", {"name": "Zoë"})
    ]
    assert reply.usage is not None
    assert (reply.usage.fresh_input_tokens, reply.usage.cache_read_tokens, reply.usage.output_tokens) == (36, 64, 20)
    assert reply.usage.raw["prompt_tokens_details"]["cached_tokens"] == 64
    assert reply.latency_s is not None
    assert (reply.first_token_s is not None) == stream
    assert not reply.cached


RECOVERS = {
    "429 with Retry-After": Fault(429, error("slow down"), SOON),
    "429 without": Fault(429, error("slow down")),
    "500": Fault(500, error("oops"), SOON),
    "503": Fault(503, "<html>unavailable</html>", SOON),
    "connection reset": Fault(reset=True),
    "malformed JSON": Fault(body='{"choices": [{"mess'),
    "no JSON at all": Fault(body="<html>Welcome to the proxy</html>"),
    "empty choices": Fault(body={**completion(), "choices": []}),
    "an error in a 200": Fault(body=error("upstream failed")),
    "body cut off": Fault(cut_after=40),
}


@pytest.mark.parametrize("fault", RECOVERS.values(), ids=RECOVERS)
@pytest.mark.parametrize("stream", [False, True])
def test_a_passing_fault_is_retried_and_a_lasting_one_is_an_error(
    server: FaultyServer, fault: Fault, *, stream: bool
) -> None:
    server.faults = [fault]
    assert client(server, stream=stream)(REQUEST).text.strip() == "It has 32 GB."
    assert server.requests == 2
    server.always = fault
    with pytest.raises(ModelError, match="model m at http://127") as raised:
        client(server, retries=0, stream=stream)(REQUEST)
    assert not isinstance(raised.value, ContextOverflow)
    assert raised.value.__context__ is None or raised.value.__suppress_context__


def test_a_hanging_server_is_left_after_the_timeout(server: FaultyServer) -> None:
    server.always = Fault(hang_s=1.0)
    with pytest.raises(ModelError, match="timed out"):
        client(server, timeout_s=0.1, retries=0)(REQUEST)


def test_a_wrong_model_name_is_not_retried(server: FaultyServer) -> None:
    server.always = Fault(404, error("The model `m` does not exist", code="model_not_found"))
    with pytest.raises(ModelError, match=r"HTTP 404.*does not exist"):
        client(server)(REQUEST)
    assert server.requests == 1


OVERFLOWS = {
    "openai": Fault(
        400,
        error(
            "This model's maximum context length is 8192 tokens. However, your messages resulted in 9001 tokens. "
            "Please reduce the length of the messages.",
            code="context_length_exceeded",
        ),
    ),
    "anthropic": Fault(400, error("prompt is too long: 210034 tokens > 200000 maximum")),
    "gemini": Fault(
        400,
        error("The input token count (1200000) exceeds the maximum number of tokens allowed (1048576)."),
    ),
    "vllm": Fault(
        400,
        {
            "object": "error",
            "message": "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens.",
            "type": "BadRequestError",
            "code": 400,
        },
    ),
    "llama.cpp": Fault(
        400,
        {"error": {"code": 400, "message": "the request exceeds the available context size", "n_ctx": 4096}},
    ),
    "in a 200": Fault(body=error("prompt is too long: 210034 tokens > 200000 maximum")),
}


@pytest.mark.parametrize("fault", OVERFLOWS.values(), ids=OVERFLOWS)
def test_a_prompt_that_does_not_fit_is_told_from_a_failure_and_asked_once(server: FaultyServer, fault: Fault) -> None:
    server.always = fault
    with pytest.raises(ContextOverflow):
        client(server)(REQUEST)
    assert server.requests == 1


def test_refusals_empty_answers_and_bad_arguments_are_data(server: FaultyServer) -> None:
    def said(**message: object) -> ModelReply:
        server.answer = lambda _: completion(**{"text": None, **message})
        return client(server)(REQUEST)

    assert (said().text, said().calls, said().finish) == ("", (), "stop")
    refused = said(refusal="I cannot help with that.")
    assert (refused.text, refused.finish) == ("I cannot help with that.", "refusal")
    calls = [
        {"function": {"name": "look", "arguments": "{not json"}},
        {"id": "", "function": {"name": "look", "arguments": {"name": "x"}}},
        {"id": "c3"},
    ]
    reply = said(tool_calls=calls)
    assert [call.arguments for call in reply.calls] == ["{not json", '{"name": "x"}', ""]
    assert len({call.id for call in reply.calls}) == 3
    assert all(call.id for call in reply.calls)
    assert said(text=[{"type": "text", "text": "in "}, {"type": "text", "text": "parts"}]).text == "in parts"


def test_ten_megabytes_are_an_answer(server: FaultyServer) -> None:
    server.answer = lambda _: completion("wort " * 2_000_000)
    assert len(client(server)(REQUEST).text) == 10_000_000


USAGES = {
    "openai": (
        "openai_chat",
        {
            "prompt_tokens": 2006,
            "completion_tokens": 300,
            "total_tokens": 2306,
            "prompt_tokens_details": {"cached_tokens": 1920, "audio_tokens": 0},
            "completion_tokens_details": {"reasoning_tokens": 192, "accepted_prediction_tokens": 0},
        },
        (86, 1920, 0, 108, 192),
    ),
    "anthropic, passed on by a proxy": (
        "anthropic",
        {
            "input_tokens": 21,
            "cache_creation_input_tokens": 188,
            "cache_read_input_tokens": 2000,
            "output_tokens": 393,
            "service_tier": "standard",
        },
        (21, 2000, 188, 393, 0),
    ),
    "anthropic, its own compatible endpoint": (
        "openai_chat",
        {
            "prompt_tokens": 30,
            "completion_tokens": 12,
            "total_tokens": 42,
            "prompt_tokens_details": None,
            "completion_tokens_details": None,
        },
        (30, 0, 0, 12, 0),
    ),
    "deepseek": (
        "deepseek",
        {
            "prompt_tokens": 1000,
            "completion_tokens": 80,
            "total_tokens": 1080,
            "prompt_cache_hit_tokens": 896,
            "prompt_cache_miss_tokens": 104,
            "completion_tokens_details": {"reasoning_tokens": 50},
        },
        (104, 896, 0, 30, 50),
    ),
    "gemini": (
        "gemini_openai",
        {
            "prompt_tokens": 500,
            "completion_tokens": 40,
            "total_tokens": 740,
            "prompt_tokens_details": {"cached_tokens": 128},
        },
        (372, 128, 0, 40, 200),
    ),
    "vllm": (
        "vllm",
        {"prompt_tokens": 64, "total_tokens": 80, "completion_tokens": 16, "prompt_tokens_details": None},
        (64, 0, 0, 16, 0),
    ),
    "more cached than sent": (
        "openai_chat",
        {"prompt_tokens": 50, "completion_tokens": 9, "prompt_tokens_details": {"cached_tokens": 5383}},
        (50, 5383, 0, 9, 0),
    ),
}


@pytest.mark.parametrize(("dialect", "payload", "buckets"), USAGES.values(), ids=USAGES)
@pytest.mark.parametrize("stream", [False, True])
def test_each_provider_s_usage_is_read_into_disjoint_buckets_that_add_up(
    server: FaultyServer, dialect: str, payload: dict[str, object], buckets: tuple[int, ...], *, stream: bool
) -> None:
    server.answer = lambda _: completion(usage=payload)
    if stream and "prompt_tokens" not in payload:
        payload = {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0, **payload}
    usage = client(server, dialect=dialect, stream=stream)(REQUEST).usage
    assert usage is not None
    found = (
        usage.fresh_input_tokens,
        usage.cache_read_tokens,
        usage.cache_write_tokens,
        usage.output_tokens,
        usage.reasoning_tokens,
    )
    assert found == buckets
    assert usage.input_tokens == sum(buckets[:3])
    assert payload.items() <= dict(usage.raw).items()


def test_missing_usage_is_missing_not_zero(server: FaultyServer) -> None:
    server.answer = lambda _: completion(usage=None)
    assert client(server)(REQUEST).usage is None


def test_the_key_is_sent_and_said_nowhere(server: FaultyServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAB_KEY", "sk-very-secret-0123456789")
    server.always = Fault(401, error("Incorrect API key provided: sk-very-secret-0123456789."))
    with pytest.raises(ModelError) as raised:
        client(server)(REQUEST)
    assert server.keys == ["Bearer sk-very-secret-0123456789"]
    assert "secret" not in str(raised.value)
    server.always = None
    server.answer = lambda _: completion("You sent sk-very-secret-0123456789, did you?")
    for stream in (False, True):
        assert "You sent ***" in client(server, stream=stream)(REQUEST).text
    assert "secret" not in repr(client(server))


def test_addresses_with_keys_in_them_are_refused() -> None:
    for url in ("http://me:secret@127.0.0.1/v1", "https://example.org/v1?key=secret", "127.0.0.1:8080"):
        with pytest.raises(ConfigurationError, match="base_url") as raised:
            OpenAICompatible("m", url)
        assert "secret" not in str(raised.value)


def test_openai_itself_needs_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/elsewhere")
    with pytest.raises(ConfigurationError, match="OPENAI_API_KEY"):
        OpenAICompatible("gpt-5-mini")(REQUEST)
    assert "max_completion_tokens" in OpenAICompatible("gpt-5-mini").body(REQUEST)

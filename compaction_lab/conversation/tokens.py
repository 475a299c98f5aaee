"""How many tokens a text, a message, the tool definitions and a request weigh; no window, price or budget lives here.

Text is counted exactly with OpenAI's encodings, offline. Text that spells a special token (``<|endoftext|>``) is
ordinary text, and a lone surrogate counts as U+FFFD, which is what would be sent.

Two estimates stand beside the encodings. ``characters`` is ``ceil(characters / 4)``: ours, so that a text that is not
empty never counts as nothing. ``bytes_over_4`` is ``floor(UTF-8 bytes / 4)``, as Agent Framework for .NET estimates.

What else a request holds is counted by these rules, under whichever tokenizer:

message
    3, 1 for its role, and its content (OpenAI cookbook, *How to count tokens with tiktoken*). Text parts are counted
    each on its own, with nothing between them.
name
    Of a participant: its text and 1 (cookbook). The name on a tool result is no field of the chat format: free.
tool call
    Name, arguments as written, and 3 (measured by openai-chat-tokens; no official figure exists).
tool result
    Its text. Call ids are free, here and in the call: providers render the link as structure, and the length of an id
    says who recorded the session, not how long it is.
reasoning
    Its text when readable; otherwise its opaque payload like an opaque item, an estimate.
image
    85, and 170 for each 512-pixel tile once it fits 2048 x 2048 and its shorter side 768 (OpenAI vision guide, high
    detail; smaller images are not enlarged). Of unknown size: as 1024 x 1024, 765.
audio
    10 a second (OpenAI realtime guide: 1 for 100 ms of input). Seconds are estimated from bytes: 48,000 a second for
    PCM and WAV (24 kHz, 16 bit), 16,000 for all else. Of unknown size: 30 seconds.
file
    Text: its bytes over 4. Anything else: 2,000, about a page (Anthropic PDF guide: 1,500 to 3,000).
opaque item
    Its JSON as text, except that each base64 run of 256 characters or more counts as its decoded bytes over 4.
tool definitions
    The cookbook's function rule with the constants of the encoding's generation: 7 a function (10 with cl100k_base) and
    ``name:description``; 3 for having properties; 3 and ``name:type:description`` a property; 3 and its text an enum
    value, -3 for having an enum; 12 once. The cookbook stops at the first level; deeper properties are counted alike.
request
    3 that prime the reply (cookbook).

Base64 is never counted as text. Providers do not publish their templates: a total is exact in its text and an estimate
in its few tokens of structure.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from typing import TYPE_CHECKING, Protocol

from compaction_lab.conversation.encodings import ENCODINGS, load_encoding
from compaction_lab.conversation.messages import JSON, Media, Message, Opaque, Reasoning, Text, ToolDefinition
from compaction_lab.errors import TokenizerError

if TYPE_CHECKING:
    import tiktoken

MESSAGE_TOKENS = 4
"""Of any message, empty or not: 3 and its role, which is one token in both chat encodings."""
NAME_TOKENS = 1
CALL_TOKENS = 3
REPLY_TOKENS = 3
IMAGE_BASE_TOKENS, IMAGE_TILE_TOKENS, IMAGE_TILE_PIXELS = 85, 170, 512
IMAGE_LONG_PIXELS, IMAGE_SHORT_PIXELS = 2048, 768
UNKNOWN_IMAGE_PIXELS = 1024
AUDIO_TOKENS_PER_SECOND, UNKNOWN_AUDIO_SECONDS = 10, 30
PCM_BYTES_PER_SECOND, COMPRESSED_BYTES_PER_SECOND = 48_000, 16_000
FILE_TOKENS = 2_000
FUNCTION_TOKENS, FUNCTION_TOKENS_CL100K = 7, 10
PROPERTIES_TOKENS, PROPERTY_TOKENS = 3, 3
ENUM_TOKENS, ENUM_ITEM_TOKENS = -3, 3
FUNCTIONS_END_TOKENS = 12

_BASE64_RUN = re.compile(r"[A-Za-z0-9+/_-]{256,}={0,2}")
_BLANKS = re.compile(r"\s+")
# tiktoken's engine overflows its stack, and panics, on a run of a million blanks.
_BLANKS_LIMIT = 500_000
_LONG = 2_000


class Tokenizer(Protocol):
    """Anything that says how many tokens a text is; two of one ``name`` must always agree."""

    @property
    def name(self) -> str:
        """What configurations, manifests and memo keys call it."""
        ...

    def count(self, text: str) -> int:
        """Return the number of tokens of ``text``."""
        ...


@dataclass(frozen=True, slots=True)
class Estimate:
    """A formula on the length of a text."""

    name: str
    measure: Callable[[str], int]

    def count(self, text: str) -> int:
        """Return the estimated number of tokens of ``text``."""
        return self.measure(text)

    def __reduce__(self) -> tuple[Callable[[str], Tokenizer], tuple[str]]:
        return tokenizer, (self.name,)


class EncodingTokenizer:
    """Exact counts of one encoding; each distinct text is encoded once in the life of the process.

    Long texts are remembered by their digest: what summarizers are asked would otherwise fill the memory.
    """

    def __init__(self, name: str, encoding: tiktoken.Encoding) -> None:
        self.name = name
        self._encoding = encoding
        self._counts: dict[str | bytes, int] = {}

    def count(self, text: str) -> int:
        """Return the number of tokens of ``text``, special tokens being ordinary text."""
        key: str | bytes = text
        if len(text) > _LONG:
            key = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
        found = self._counts.get(key)
        if found is None:
            found = self._counts[key] = self._encode(text)
        return found

    def __reduce__(self) -> tuple[Callable[[str], Tokenizer], tuple[str]]:
        return tokenizer, (self.name,)

    def _encode(self, text: str) -> int:
        longest = max((len(run[0]) for run in _BLANKS.finditer(text)), default=0) if len(text) > _BLANKS_LIMIT else 0
        if longest <= _BLANKS_LIMIT:
            return len(self._encoding.encode_ordinary(text))
        import regex

        sent = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        pieces = regex.finditer(self._encoding._pat_str, sent)  # noqa: SLF001 - no public way to encode one piece
        return sum(len(self._encoding._encode_single_piece(piece[0])) for piece in pieces)  # noqa: SLF001


ESTIMATES: dict[str, Callable[[str], int]] = {
    "characters": lambda text: -(-len(text) // 4),
    "bytes_over_4": lambda text: len(text.encode("utf-8", "surrogatepass")) // 4,
}
_SUBSCHEMAS = ("items", "prefixItems", "anyOf", "oneOf", "allOf", "additionalProperties")


@cache
def tokenizer(name: str) -> Tokenizer:
    """Return the tokenizer called ``name``, the same object each time.

    Parameters
    ----------
    name
        ``o200k_base``, ``cl100k_base``, ``o200k_harmony`` (exact, always available); ``p50k_base``, ``r50k_base``
        (exact, when tiktoken's cache folder holds them); ``characters``, ``bytes_over_4`` (estimates).

    Raises
    ------
    TokenizerError
        If the name is unknown, or its vocabulary is not on this machine: nothing is downloaded or approximated.

    Examples
    --------
    >>> tokenizer("o200k_base").count("Compaction keeps what matters.")
    6
    >>> tokenizer("characters").count("Compaction keeps what matters.")
    8
    """
    if name in ESTIMATES:
        return Estimate(name, ESTIMATES[name])
    if name not in ENCODINGS:
        known = [*ENCODINGS, *ESTIMATES]
        close = get_close_matches(name, known, 1)
        hint = f"Did you mean {close[0]!r}?" if close else "A model's name is not an encoding's."
        raise TokenizerError(f"Unknown tokenizer {name!r}. {hint} Known: {', '.join(known)}.")
    return EncodingTokenizer(name, load_encoding(name))


class TokenCounter:
    """Counts messages, tool definitions and requests by the rules of this module, each message once.

    Counters of equal tokenizers share their results, which are kept in ``Message.memo``.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.tokenizer = tokenizer
        self._key = ("tokens", tokenizer.name)
        self._function_tokens = FUNCTION_TOKENS_CL100K if tokenizer.name == "cl100k_base" else FUNCTION_TOKENS

    @property
    def request_overhead(self) -> int:
        """Tokens that every request costs beside its messages and tools: they prime the reply."""
        return REPLY_TOKENS

    def message(self, message: Message) -> int:
        """Return the tokens of ``message`` as part of a prompt, its envelope included.

        Examples
        --------
        >>> from compaction_lab.conversation.messages import user
        >>> TokenCounter(tokenizer("o200k_base")).message(user("hello"))
        5
        """
        found = message.memo.get(self._key)
        if isinstance(found, int):
            return found
        tokens = MESSAGE_TOKENS + self.output(message) + self.reasoning(message)
        if message.name and message.role != "tool":
            tokens += NAME_TOKENS + self.tokenizer.count(message.name)
        message.memo[self._key] = tokens
        return tokens

    def output(self, message: Message) -> int:
        """Return the tokens of content and tool calls, without envelope and reasoning: what writing it would cost."""
        count = self.tokenizer.count
        tokens = sum(CALL_TOKENS + count(call.name) + count(call.arguments) for call in message.calls)
        for part in message.parts:
            match part:
                case Text(text):
                    tokens += count(text)
                case Media():
                    tokens += media_tokens(part)
                case Opaque():
                    tokens += self._opaque(part.data)
                case Reasoning():
                    pass
        return tokens

    def reasoning(self, message: Message) -> int:
        """Return the tokens of the reasoning that ``message`` carries."""
        return sum(
            self.tokenizer.count(part.text) if part.text else self._opaque(part.opaque)
            for part in message.parts
            if isinstance(part, Reasoning)
        )

    def tools(self, definitions: Iterable[ToolDefinition]) -> int:
        """Return the tokens of the tool definitions of a request; none cost nothing."""
        tokens = 0
        for definition in definitions:
            tokens += self._function_tokens
            tokens += self.tokenizer.count(f"{definition.name}:{definition.description.removesuffix('.')}")
            tokens += self._schema(definition.parameters)
        return tokens + FUNCTIONS_END_TOKENS if tokens else 0

    def request(self, messages: Iterable[Message], definitions: Iterable[ToolDefinition] = ()) -> int:
        """Return the tokens of a whole request: messages, tool definitions and overhead."""
        return sum(map(self.message, messages)) + self.tools(definitions) + self.request_overhead

    def _opaque(self, data: str) -> int:
        encoded = sum(match.end() - match.start() for match in _BASE64_RUN.finditer(data))
        readable = _BASE64_RUN.sub("", data) if encoded else data
        return self.tokenizer.count(readable) + encoded * 3 // 16

    def _schema(self, parameters: Mapping[str, JSON]) -> int:
        """Count the properties of a JSON Schema at any depth; no recursion, since the depth is the sender's choice."""
        tokens = 0
        open_schemas: list[JSON] = [dict(parameters)]
        while open_schemas:
            schema = open_schemas.pop()
            if isinstance(schema, list):
                open_schemas.extend(schema)
            if not isinstance(schema, dict):
                continue
            properties = schema.get("properties")
            if isinstance(properties, dict) and properties:
                tokens += PROPERTIES_TOKENS
                tokens += sum(self._property(name, value) for name, value in properties.items())
                open_schemas.extend(properties.values())
            open_schemas.extend(schema[keyword] for keyword in _SUBSCHEMAS if keyword in schema)
            for keyword in ("$defs", "definitions"):
                named = schema.get(keyword)
                open_schemas.extend(named.values() if isinstance(named, dict) else ())
        return tokens

    def _property(self, name: str, schema: JSON) -> int:
        described: Mapping[str, JSON] = schema if isinstance(schema, dict) else {}
        kind, values = described.get("type", "any"), described.get("enum")
        kind = "|".join(map(str, kind)) if isinstance(kind, list) else str(kind)
        description = str(described.get("description") or "").removesuffix(".")
        tokens = PROPERTY_TOKENS + self.tokenizer.count(f"{name}:{kind}:{description}")
        if isinstance(values, list):
            texts = (value if isinstance(value, str) else json.dumps(value) for value in values)
            tokens += ENUM_TOKENS + sum(ENUM_ITEM_TOKENS + self.tokenizer.count(text) for text in texts)
        return tokens


def media_tokens(media: Media) -> int:
    """Return the tokens of an image, sound or file, from what is known of its size.

    Examples
    --------
    >>> media_tokens(Media("image", width=1024, height=1024)), media_tokens(Media("image", width=2048, height=4096))
    (765, 1105)
    """
    if media.kind == "image":
        return _image_tokens(media.width or UNKNOWN_IMAGE_PIXELS, media.height or UNKNOWN_IMAGE_PIXELS)
    if media.kind == "audio":
        pcm = "wav" in media.mime or "pcm" in media.mime
        rate = PCM_BYTES_PER_SECOND if pcm else COMPRESSED_BYTES_PER_SECOND
        seconds = media.byte_size / rate or UNKNOWN_AUDIO_SECONDS
        return math.ceil(seconds * AUDIO_TOKENS_PER_SECOND)
    return media.byte_size // 4 if media.mime.startswith("text/") and media.byte_size else FILE_TOKENS


def _image_tokens(width_px: int, height_px: int) -> int:
    scale = min(1.0, IMAGE_LONG_PIXELS / max(width_px, height_px), IMAGE_SHORT_PIXELS / min(width_px, height_px))
    tiles = math.ceil(width_px * scale / IMAGE_TILE_PIXELS) * math.ceil(height_px * scale / IMAGE_TILE_PIXELS)
    return IMAGE_BASE_TOKENS + IMAGE_TILE_TOKENS * tiles

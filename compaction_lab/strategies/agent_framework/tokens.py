"""The counting rule ``agent_framework_json``: a message weighs what its JSON weighs, id and envelope included.

As agent-framework-core 1.23.0 counts (basis 2): the JSON text of contents, message id and role goes through a
tokenizer; inline media count as base64, opaque reasoning does not count, instructions and tool definitions are not part
of it.
"""

from __future__ import annotations

import json
from typing import Protocol, cast, runtime_checkable

from compaction_lab.conversation.messages import JSON, Message
from compaction_lab.conversation.tokens import tokenizer as find_tokenizer
from compaction_lab.errors import ConfigurationError
from compaction_lab.strategies.agent_framework.contents import Content, facets

_SEALED = "encrypted_content"


@runtime_checkable
class Tokenizer(Protocol):
    """What Agent Framework asks of a tokenizer."""

    def count_tokens(self, text: str) -> int:
        """Return the number of tokens of ``text``."""
        ...


class CharacterEstimatorTokenizer:
    """The framework's estimate: four characters a token, rounded down, at least one.

    Examples
    --------
    >>> [CharacterEstimatorTokenizer().count_tokens(text) for text in ("", "1234567", "12345678")]
    [1, 1, 2]
    """

    name = "characters"

    def count_tokens(self, text: str) -> int:
        """Return the estimated number of tokens of ``text``."""
        return max(1, len(text) // 4)


class _Exact:
    """One of the lab's tokenizers, under the framework's method name."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._tokenizer = find_tokenizer(name)

    def count_tokens(self, text: str) -> int:
        return self._tokenizer.count(text)


CHARACTERS = CharacterEstimatorTokenizer()
_BY_NAME: dict[str, Tokenizer] = {"characters": CHARACTERS}


def resolve(tokenizer: object) -> Tokenizer | None:
    """Return the tokenizer a parameter names.

    Parameters
    ----------
    tokenizer
        ``None``; ``characters`` (the framework's estimate); the name of one of the lab's encodings; or an object with
        ``count_tokens(text)``.

    Raises
    ------
    ConfigurationError
        It is something else.
    """
    if tokenizer is None:
        return None
    if isinstance(tokenizer, str):
        if tokenizer not in _BY_NAME:
            _BY_NAME[tokenizer] = _Exact(tokenizer)
        return _BY_NAME[tokenizer]
    if isinstance(tokenizer, Tokenizer):
        return tokenizer
    msg = (
        f"tokenizer={tokenizer!r}; expected null, characters, an encoding such as o200k_base, or an object with "
        "a method count_tokens(text)"
    )
    raise ConfigurationError(msg)


def count(message: Message, message_id: str, tokenizer: Tokenizer) -> int:
    """Return what a message with this id weighs.

    Examples
    --------
    >>> from compaction_lab.conversation.messages import user
    >>> count(user("hello"), "msg_0", CHARACTERS)
    29
    """
    head, tail = _around_id(message)
    written_id = json.dumps(message_id or None, ensure_ascii=False)
    if tokenizer is CHARACTERS:
        return max(1, (len(head) + len(written_id) + len(tail)) // 4)
    name = getattr(tokenizer, "name", None)
    if not isinstance(tokenizer, _Exact):
        return tokenizer.count_tokens(f"{head}{written_id}{tail}")
    key = ("agent_framework", name, message_id)
    found = message.memo.get(key)
    if found is None:
        found = message.memo[key] = tokenizer.count_tokens(f"{head}{written_id}{tail}")
    return cast("int", found)


def serialised(message: Message, message_id: str) -> str:
    """Return the JSON text that is counted."""
    head, tail = _around_id(message)
    return f"{head}{json.dumps(message_id or None, ensure_ascii=False)}{tail}"


def _around_id(message: Message) -> tuple[str, str]:
    found = message.memo.get("agent_framework_json")
    if found is None:
        shown = facets(message)
        contents = json.dumps([_counted(c) for c in shown.contents], ensure_ascii=False, sort_keys=True)
        role = json.dumps(shown.role, ensure_ascii=False)
        found = message.memo["agent_framework_json"] = (
            f'{{"contents": {contents}, "message_id": ',
            f', "role": {role}}}',
        )
    return cast("tuple[str, str]", found)


def _counted(content: Content) -> Content:
    kept = {key: value for key, value in content.items() if key not in {"items", "protected_data"}}
    readable = _readable(content.get("protected_data"))
    if readable is not None:
        kept["protected_data"] = json.dumps(readable, ensure_ascii=False)
    properties = kept.get("additional_properties")
    if properties:
        kept["additional_properties"] = _unsealed(properties) or {}
    return kept


def _readable(protected: JSON) -> JSON:
    """Return what of a reasoning item's payload is clear text: JSON less its sealed members, else nothing."""
    if not isinstance(protected, str) or not protected:
        return None
    try:
        payload = json.loads(protected)
    except ValueError:
        return None
    return _unsealed(payload) if isinstance(payload, (dict, list)) else None


def _unsealed(value: JSON) -> JSON:
    if isinstance(value, dict):
        kept = {key: _unsealed(item) for key, item in value.items() if key != _SEALED}
        return {key: item for key, item in kept.items() if item is not None} or None
    if isinstance(value, list):
        return [item for item in map(_unsealed, value) if item is not None] or None
    return value

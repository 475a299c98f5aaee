"""The three kinds of messages that foreign strategies work on: to them and back."""

from __future__ import annotations

import copy
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from inspect import Parameter, isawaitable, isclass, iscoroutinefunction, signature
from typing import TYPE_CHECKING, Protocol, cast

from compaction_lab.conversation.context import Key, Placed
from compaction_lab.conversation.messages import JSON, Message
from compaction_lab.conversation.wire import from_openai, to_openai
from compaction_lab.errors import TranscriptError
from compaction_lab.models.base import ModelReply, ModelRequest
from compaction_lab.strategies.agent_framework.convert import Theirs, from_framework, to_framework
from compaction_lab.strategies.agent_framework.tokens import resolve
from compaction_lab.strategies.base import UNCHANGED, Situation
from compaction_lab.strategies.foreign_results import Returned
from compaction_lab.strategies.foreign_worker import Ask

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage

KEY = "compaction_lab_key"
"""Where a converted message carries its place, so that it is known again."""


class Unusable(Exception):
    """A result that is no conversation; the text completes 'foreign strategy ...'."""


class Adapter(Protocol):
    """One occasion of a foreign strategy."""

    @property
    def given(self) -> Sequence[Placed]:
        """What it is given, in order."""
        ...

    def run(self, target: object, arguments: Mapping[str, JSON], ask: Ask) -> object | Awaitable[object]:
        """Run it, in its own thread; return what it returned."""
        ...

    def read(self, result: object) -> list[Returned]:
        """Say what its result is made of.

        Raises
        ------
        Unusable
            The result is no conversation.
        """
        ...

    def memory(self, keys: Sequence[Key]) -> object:
        """Return what to remember, given the places of what it returned."""
        ...


def adapter(style: str, situation: Situation) -> Adapter:
    """Return the adapter of a style for one occasion."""
    given = tuple(situation.context.entries())
    if style == "openai":
        return OpenAIMessages(given)
    return AgentFrameworkMessages(given, situation) if style == "agent_framework" else LangChainMessages(given)


def made(target: object, arguments: Mapping[str, JSON], supplied: Mapping[str, Callable[[], object]]) -> object:
    """Return the strategy: the target itself, or what its class or function makes from the arguments."""
    if not isclass(target) and not arguments:
        return target
    given = {name: _argument(name, value, supplied) for name, value in arguments.items()}
    maker = cast("Callable[..., object]", target)
    parameters = signature(maker).parameters
    for name, supply in supplied.items():
        if name in parameters and name not in given and parameters[name].default is Parameter.empty:
            given[name] = supply()
    return maker(**given)


def _argument(name: str, value: JSON, supplied: Mapping[str, Callable[[], object]]) -> object:
    from compaction_lab.strategies.foreign import located

    if isinstance(value, dict) and "target" in value:
        inner = value.get("arguments")
        return made(located(str(value["target"])), inner if isinstance(inner, dict) else {}, supplied)
    if isinstance(value, (list, tuple)):
        return [_argument("", item, supplied) for item in value]
    return resolve(value) if name == "tokenizer" and isinstance(value, str) else value


def _asked(ask: Ask, messages: Sequence[Message]) -> str:
    reply: ModelReply = ask(ModelRequest(tuple(messages), "summarizer"))
    if reply.error:
        raise RuntimeError(reply.error)
    return reply.text


@dataclass
class OpenAIMessages:
    """A callable on OpenAI chat messages."""

    given: tuple[Placed, ...]
    _sent: list[dict[str, JSON]] = field(init=False)

    def __post_init__(self) -> None:
        """Convert."""
        self._sent = [copy.deepcopy(to_openai(placed.message)) for placed in self.given]
        self._before = copy.deepcopy(self._sent)

    def run(self, target: object, arguments: Mapping[str, JSON], ask: Ask) -> object | Awaitable[object]:
        """Call it with a list of its own."""
        client = {"client": lambda: lambda messages: _asked(ask, [from_openai(m) for m in messages])}
        strategy = cast("Callable[[object], object]", made(target, arguments, client))
        self._list = list(self._sent)
        return strategy(self._list)

    def read(self, result: object) -> list[Returned]:
        """Know messages again by identity, then by content, then by the call they answer."""
        found = self._list if result is None else result
        if isinstance(found, (str, bytes)) or not isinstance(found, Sequence):
            raise Unusable(f"returned {type(found).__name__}, not a list of messages")
        positions = {id(message): position for position, message in enumerate(self._sent)}
        used = {positions[id(item)] for item in found if id(item) in positions}
        items = []
        for number, item in enumerate(found):
            if not isinstance(item, Mapping):
                raise Unusable(f"returned a {type(item).__name__} as message {number}")
            source = positions.get(id(item))
            if source is None:
                source = self._alike(item, used)
                if source is not None:
                    used.add(source)
            items.append(self._item(number, item, source))
        return items

    def _alike(self, item: Mapping[str, JSON], used: set[int]) -> int | None:
        free = [position for position in range(len(self._before)) if position not in used]
        same = next((position for position in free if self._before[position] == item), None)
        if same is not None:
            return same
        for name in ("id", "tool_call_id", "tool_calls"):
            if item.get(name):
                alike = (p for p in free if self._before[p].get(name) == item[name] and _role(item, self._before[p]))
                found = next(alike, None)
                if found is not None:
                    return found
        return None

    def _item(self, number: int, item: Mapping[str, JSON], source: int | None) -> Returned:
        if source is not None and self._before[source] == item:
            return Returned(source)
        try:
            message = from_openai(dict(item), f"message {number}", keep_media=True)
        except TranscriptError as error:
            raise Unusable(f"returned what is no message: {error}") from error
        return Returned(source, _authored(message, "injected" if source is None else "placeholder"))

    def memory(self, keys: Sequence[Key]) -> object:  # noqa: ARG002 - the protocol's shape
        """Remember nothing."""
        return UNCHANGED


def _role(left: Mapping[str, JSON], right: Mapping[str, JSON]) -> bool:
    return left.get("role") == right.get("role")


def _authored(message: Message, source: str) -> Message:
    from dataclasses import replace

    return replace(message, source=cast("Theirs", source))


@dataclass
class AgentFrameworkMessages:
    """A strategy of Agent Framework, on the list that it annotates."""

    given: tuple[Placed, ...]
    situation: Situation
    _list: list[Theirs] = field(init=False, default_factory=list)
    _before: dict[Key, object] = field(init=False, default_factory=dict)

    def run(self, target: object, arguments: Mapping[str, JSON], ask: Ask) -> object | Awaitable[object]:
        """Apply it to the list, annotated as the framework does before its own model calls."""
        import agent_framework as af

        self._list = self._kept(af) or [self._message(af, placed) for placed in self.given]
        self._before = {_key(message): _contents(message) for message in self._list}
        strategy = made(target, arguments, {"client": lambda: _client(af, ask)})
        return af.apply_compaction(self._list, strategy=cast("Theirs", strategy))

    def _kept(self, af: Theirs) -> list[Theirs] | None:
        """Return the list of last time, with its notes and excluded messages, and the new messages appended."""
        memory = self.situation.memory
        unchanged = self.situation.last is self.situation.context
        if self.situation.history == "view" or not isinstance(memory, str) or not unchanged:
            return None
        kept = [af.Message.from_dict(row) for row in json.loads(memory)]
        known = {_key(message) for message in kept}
        return kept + [self._message(af, placed) for placed in self.given if placed.key not in known]

    def _message(self, af: Theirs, placed: Placed) -> Theirs:
        message = to_framework(placed.message, af)
        message.additional_properties[KEY] = list(placed.key)
        return message

    def read(self, result: object) -> list[Returned]:
        """Take what is not excluded."""
        if not isinstance(result, list) or not all(hasattr(item, "additional_properties") for item in result):
            raise Unusable(f"left {type(result).__name__}, not the framework's messages")
        positions = {placed.key: position for position, placed in enumerate(self.given)}
        items = []
        self._out = result
        for message in result:
            source = positions.get(_key(message))
            if source is not None and self._before.get(_key(message)) == _contents(message):
                items.append(Returned(source))
                continue
            author = "placeholder" if source is not None else "summary"
            items.append(Returned(source, _authored(from_framework(message), author)))
        return items

    def memory(self, keys: Sequence[Key]) -> object:
        """Remember the list with its notes."""
        for message, key in zip(self._out, keys, strict=True):
            message.additional_properties[KEY] = list(key)
        return json.dumps([message.to_dict() for message in self._list])


def _key(message: Theirs) -> Key:
    found = message.additional_properties.get(KEY)
    return (found[0], found[1]) if found else (-1, -1)


def _contents(message: Theirs) -> object:
    return (message.role, [content.to_dict() for content in message.contents])


def _client(af: Theirs, ask: Ask) -> object:
    class Client:
        async def get_response(self, messages: Sequence[Theirs], **_: object) -> Theirs:
            text = _asked(ask, [from_framework(message) for message in messages])
            return af.ChatResponse(messages=[af.Message("assistant", [text])])

    return Client()


@dataclass
class LangChainMessages:
    """A context edit, a middleware with ``before_model``, or a callable, on LangChain messages."""

    given: tuple[Placed, ...]

    def run(self, target: object, arguments: Mapping[str, JSON], ask: Ask) -> object | Awaitable[object]:
        """Call whatever it is."""
        from langchain_core.messages.utils import count_tokens_approximately

        self._sent = self._converted()
        self._before = [message.model_dump() for message in self._sent]
        self._list: list[BaseMessage] = list(self._sent)
        strategy: Theirs = made(target, arguments, {"model": lambda: _chat_model(ask)})
        if hasattr(strategy, "apply"):
            strategy.apply(self._list, count_tokens=count_tokens_approximately)
            return self._list
        if hasattr(strategy, "before_model"):
            return self._middleware(strategy)
        return cast("object", strategy(self._list))

    def _middleware(self, strategy: Theirs) -> object | Awaitable[object]:
        state = {"messages": self._list}
        inherited = "before_model" not in type(strategy).__dict__ and "abefore_model" in type(strategy).__dict__
        answer = (strategy.abefore_model if inherited else strategy.before_model)(state, None)
        if isawaitable(answer) or iscoroutinefunction(strategy.before_model):
            return self._updated_later(cast("Awaitable[object]", answer))
        return self._updated(answer)

    async def _updated_later(self, answer: Awaitable[object]) -> object:
        return self._updated(await answer)

    def _updated(self, answer: object) -> object:
        """Return the messages after a state update, as the graph would merge it."""
        if answer is None:
            return self._list
        if not isinstance(answer, Mapping):
            raise Unusable(f"returned {type(answer).__name__}, not a state update")
        if "messages" not in answer:
            return self._list
        from langgraph.graph.message import add_messages

        return add_messages(cast("Theirs", self._list), answer["messages"])

    def _converted(self) -> list[BaseMessage]:
        from langchain_core.messages.utils import convert_to_messages

        rows = [to_openai(placed.message) for placed in self.given]
        for row in rows:
            row.pop("id", None)
            row["content"] = row.get("content") or ""
        messages = convert_to_messages(cast("Theirs", rows))
        for message, placed in zip(messages, self.given, strict=True):
            message.id = f"{KEY}:{placed.key[0]}:{placed.key[1]}"
        return messages

    def read(self, result: object) -> list[Returned]:
        """Know messages again by the ids they were given."""
        from langchain_core.messages import BaseMessage

        found = self._list if result is None else result
        if not isinstance(found, Sequence) or not all(isinstance(item, BaseMessage) for item in found):
            raise Unusable(f"returned {type(found).__name__}, not a list of LangChain messages")
        positions = {message.id: position for position, message in enumerate(self._sent)}
        return [self._item(message, positions.get(message.id)) for message in cast("Sequence[BaseMessage]", found)]

    def _item(self, message: BaseMessage, source: int | None) -> Returned:
        if source is not None and self._same(message, source):
            return Returned(source)
        from langchain_core.messages.utils import convert_to_openai_messages

        row = cast("dict[str, JSON]", convert_to_openai_messages(message))
        row.pop("id", None)
        try:
            new = from_openai(row)
        except TranscriptError as error:
            raise Unusable(f"returned what is no message: {error}") from error
        return Returned(source, _authored(new, "summary" if source is None else "placeholder"))

    def _same(self, message: BaseMessage, source: int) -> bool:
        """Whether the provider would be sent the same: notes in the metadata do not count."""
        before, after = self._before[source], message.model_dump()
        fields = ("type", "content", "tool_calls", "tool_call_id", "name", "additional_kwargs")
        return all(before.get(name) == after.get(name) for name in fields)

    def memory(self, keys: Sequence[Key]) -> object:  # noqa: ARG002 - the protocol's shape
        """Remember nothing."""
        return UNCHANGED


def _chat_model(ask: Ask) -> object:
    from langchain_core.language_models.chat_models import BaseChatModel
    from langchain_core.messages import AIMessage
    from langchain_core.messages.utils import convert_to_openai_messages
    from langchain_core.outputs import ChatGeneration, ChatResult

    class Summarizer(BaseChatModel):
        @property
        def _llm_type(self) -> str:
            return "compaction-lab"

        def _generate(self, messages: list[Theirs], *_: object, **__: object) -> ChatResult:
            rows = cast("list[dict[str, JSON]]", convert_to_openai_messages(messages))
            text = _asked(ask, [from_openai(row) for row in rows])
            return ChatResult(generations=[ChatGeneration(message=AIMessage(text))])

    return Summarizer()

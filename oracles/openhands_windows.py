"""What OpenHands' condensers that drop events keep.

The package with them pins hundreds of others; ``OPENHANDS_SOURCE`` names its unpacked folder
``openhands/memory/condenser/impl``, whose three modules run here against the few classes they name.
"""

from __future__ import annotations

import enum
import logging
import os
import sys
import types
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from scripted import serve


class EventSource(enum.Enum):
    """Who an event comes from."""

    USER = "user"
    AGENT = "agent"


@dataclass(eq=False)
class Event:
    """An event of a history."""

    id: int
    message: dict[str, Any]
    source: EventSource = EventSource.AGENT
    content: str = ""


class SystemMessageAction(Event):
    """The system prompt."""


class MessageAction(Event):
    """Something said."""


class Observation(Event):
    """A result."""


class RecallAction(Event):
    """A look-up of knowledge; cases have none."""


@dataclass
class CondensationAction:
    """What is forgotten."""

    forgotten_event_ids: list[int] | None = None
    forgotten_events_start_id: int | None = None
    forgotten_events_end_id: int | None = None

    @property
    def forgotten(self) -> set[int]:
        """The ids of forgotten events."""
        if self.forgotten_event_ids is not None:
            return set(self.forgotten_event_ids)
        start, end = self.forgotten_events_start_id, self.forgotten_events_end_id
        return set() if start is None or end is None else set(range(start, end + 1))


@dataclass
class Condensation:
    """The answer of a condenser that forgets."""

    action: CondensationAction


@dataclass
class View:
    """What is left of a history."""

    events: list[Event] = field(default_factory=list)
    unhandled_condensation_request: bool = False

    def __len__(self) -> int:
        return len(self.events)

    def __iter__(self) -> Any:
        return iter(self.events)

    def __getitem__(self, at: Any) -> Any:
        return self.events[at]


class Condenser:
    """Stands for the base class."""

    @classmethod
    def register_config(cls, config: object) -> None:
        """Forget the configuration."""


class RollingCondenser(Condenser):
    """A condenser that forgets when it should."""

    def condense(self, view: View) -> Any:
        """Forget, or leave the view as it is."""
        return self.get_condensation(view) if self.should_condense(view) else view  # type: ignore[attr-defined]


NAMES = {
    name: value for name, value in globals().items() if isinstance(value, type) and value.__module__ == __name__
} | {"openhands_logger": logging.getLogger("openhands")}


class Anything(types.ModuleType):
    """A module in which every name is known: the classes above, or a class of no meaning."""

    def __getattr__(self, name: str) -> Any:
        return NAMES.get(name, type(name, (), {}))


def condenser(module: str, name: str) -> Any:
    """Return a condenser class, its imports answered by the classes above."""
    source = Path(os.environ["OPENHANDS_SOURCE"], f"{module}.py").read_text(encoding="utf-8")
    names: dict[str, Any] = {"__name__": module}
    exec(compile(source, module, "exec"), names)
    return names[name]


for parent in (
    "openhands",
    "openhands.core",
    "openhands.core.config",
    "openhands.core.config.condenser_config",
    "openhands.core.logger",
    "openhands.events",
    "openhands.events.action",
    "openhands.events.action.agent",
    "openhands.events.action.message",
    "openhands.events.event",
    "openhands.events.observation",
    "openhands.llm",
    "openhands.llm.llm_registry",
    "openhands.memory",
    "openhands.memory.condenser",
    "openhands.memory.condenser.condenser",
):
    sys.modules[parent] = Anything(parent)

CONDENSERS = {
    "recent": condenser("recent_events_condenser", "RecentEventsCondenser"),
    "amortized": condenser("amortized_forgetting_condenser", "AmortizedForgettingCondenser"),
    "window": condenser("conversation_window_condenser", "ConversationWindowCondenser"),
}


def to(m: dict[str, Any], number: int) -> Event:
    """Return a message as an event."""
    text, user = m["texts"][0], m["role"] == "user"
    if m["role"] == "system":
        return SystemMessageAction(number, m, content=text)
    if m["role"] == "tool":
        return Observation(number, m, content=text)
    if m["calls"]:
        return Event(number, m, content=text)
    return MessageAction(number, m, EventSource.USER if user else EventSource.AGENT, text)


def answer(case: dict[str, Any]) -> list[Any]:
    """Condense at every stop; what was forgotten stays so."""
    name = next(name for name in CONDENSERS if name in case["kind"])
    made = CONDENSERS[name](**case["parameters"])
    forgotten: set[int] = set()
    out = []
    for stop in case["stops"]:
        events = [to(m, at) for at, m in enumerate(case["messages"][:stop]) if at not in forgotten]
        result = made.condense(View(events, unhandled_condensation_request=name == "window"))
        if isinstance(result, Condensation):
            forgotten |= result.action.forgotten
            result = View([event for event in events if event.id not in forgotten])
        out.append([_kept(event.message) for event in result.events])
    return out


def _kept(m: dict[str, Any]) -> list[Any]:
    return [m["role"], m["texts"][0], [call["id"] for call in m["calls"]], m["call_id"]]


serve(answer)

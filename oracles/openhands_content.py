"""What OpenHands' masking condensers do with a case.

The package with them pins hundreds of others; ``OPENHANDS_SOURCE`` names its unpacked folder
``openhands/memory/condenser/impl``, whose two modules run here against the few classes they name.
"""

from __future__ import annotations

import os
import sys
import types
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from content_bridge import Message, answer_all


class Condenser:
    """Stands for the base class."""

    @classmethod
    def register_config(cls, config: object) -> None:
        """Forget the configuration."""


class View:
    """A list of events."""

    def __init__(self, events: list[Any]) -> None:
        self.events = events

    def __len__(self) -> int:
        return len(self.events)

    def __iter__(self) -> Any:
        return iter(self.events)

    def __getitem__(self, at: int) -> Any:
        return self.events[at]


@dataclass
class Event:
    """A message, a call or a result."""

    message: Message | None


@dataclass
class Observation(Event):
    """A result."""

    url: str = ""


class BrowserOutputObservation(Observation):
    """A result of a browser."""


class AgentCondensationObservation(Observation):
    """What stands for a masked result."""

    def __init__(self, content: str) -> None:
        super().__init__(None)
        self.content = content


def load(name: str) -> Any:
    """Run one module of the condensers with stand-ins for what it imports."""
    text = (Path(os.environ["OPENHANDS_SOURCE"]) / f"{name}.py").read_text(encoding="utf-8")
    module = types.ModuleType(name)
    sys.modules[name] = module
    names = (Condenser, View, Event, Observation, BrowserOutputObservation, AgentCondensationObservation)
    module.__dict__.update({each.__name__: each for each in names})
    blank = ("Condensation", "LLMRegistry", "ObservationMaskingCondenserConfig", "BrowserOutputCondenserConfig")
    module.__dict__.update(dict.fromkeys(blank, object))
    body = text[text.index("class ") :]
    exec(compile("from __future__ import annotations\n" + body, name, "exec"), module.__dict__)
    return module


MASKING = load("observation_masking_condenser").ObservationMaskingCondenser
BROWSER = load("browser_output_condenser").BrowserOutputCondenser


def apply(strategy: str, parameters: dict[str, Any], messages: list[Message]) -> list[Message]:
    """Let the framework act once."""
    events: list[Event] = []
    for message in messages:
        if message["role"] == "tool":
            browser = message["name"] in parameters.get("browser_tools", ())
            events.append((BrowserOutputObservation if browser else Observation)(message, ""))
            continue
        events.append(Event(message))
        events += [Event(None) for _ in message["calls"][1:]]
    own = (MASKING if "masking" in strategy else BROWSER)(parameters["attention_window"])
    done = own.condense(View(events)).events
    back = []
    for event, old in zip(done, events, strict=True):
        if isinstance(event, AgentCondensationObservation):
            back.append({**old.message, "text": event.content})
        elif event.message is not None:
            back.append(event.message)
    return back


if __name__ == "__main__":
    answer_all(apply)

"""Someone else's strategy, named by its import path, as an arm of the lab.

Our messages are converted, theirs runs, and what it kept, changed and put in is told as edits. If it raises, hangs or
returns something that is no conversation, the history stays as it is and the compaction's outcome says why.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Literal

from compaction_lab.conversation.context import Edit
from compaction_lab.conversation.messages import JSON
from compaction_lab.errors import ConfigurationError
from compaction_lab.strategies.base import Compaction, Situation, Steps
from compaction_lab.strategies.foreign_results import edits
from compaction_lab.strategies.foreign_worker import run
from compaction_lab.strategies.registry import register

Style = Literal["agent_framework", "openai", "langchain"]
SHOWN_CHARACTERS = 200


@register("foreign", semantics=1)
@dataclass(frozen=True, slots=True)
class Foreign:
    """Run an installed strategy: Agent Framework's kind, a callable on chat messages, LangChain's edits or middleware.

    Parameters
    ----------
    target
        ``module:attribute``: a strategy, or a class or function that makes one from ``arguments``.
    style
        What it works on. ``openai``: takes a list of chat messages and returns one, or changes it in place.
        ``agent_framework``: an async callable on that framework's messages. ``langchain``: an object with
        ``apply(messages, count_tokens=...)`` or ``before_model(state, runtime)``, or a callable on its messages.
    arguments
        Given to the class or function. A ``tokenizer`` may be named; ``{target: ..., arguments: ...}`` anywhere in it
        makes another strategy. A parameter called ``client`` or ``model`` that is not given receives a client whose
        calls are answered, priced and recorded as the arm's summariser.
    timeout_s
        Longest it may take, waiting for its model not counted, in seconds.

    Notes
    -----
    A strategy made by a class or function is made anew at every occasion, so that nothing leaks from one conversation
    into another; what Agent Framework notes on its messages is kept as long as the placement keeps the history.
    """

    target: str
    style: Style = "openai"
    arguments: Mapping[str, JSON] = field(default_factory=dict)
    timeout_s: float = 30.0

    def __post_init__(self) -> None:
        """Import the target."""
        if self.timeout_s <= 0:
            raise ConfigurationError(f"foreign: timeout_s={self.timeout_s!r}; expected seconds above 0")
        located(self.target)

    def __call__(self, situation: Situation) -> Steps:
        """Run the strategy on what the situation shows."""
        from compaction_lab.strategies.foreign_styles import Unusable, adapter

        shown = adapter(self.style, situation)
        try:
            returned = yield from run(lambda ask: shown.run(located(self.target), self.arguments, ask), self.timeout_s)
            items = shown.read(returned)
            changes, keys = edits(shown.given, items)
            _applicable(situation, changes)
        except ConfigurationError:
            raise
        except Unusable as problem:
            return Compaction(outcome=f"rejected: foreign strategy {problem}")
        except Exception as error:  # noqa: BLE001 - theirs, not ours: the boundary is here
            text = f"{type(error).__name__}: {error}"[:SHOWN_CHARACTERS]
            return Compaction(outcome=f"rejected: foreign strategy raised {text}")
        reason = f"{self.target} changed the messages" if changes else ""
        base: Literal["history", "last"] = "last" if situation.last is situation.context else "history"
        return Compaction(changes, shown.memory(keys), base, reason)


def located(target: str) -> object:
    """Return what an import path names.

    Raises
    ------
    ConfigurationError
        It is not ``module:attribute``, or there is no such thing.
    """
    module, _, attribute = target.partition(":")
    if not module or not attribute:
        raise ConfigurationError(f"foreign: target={target!r}; expected module:attribute, such as my_agent:compact")
    try:
        found: object = import_module(module)
        for name in attribute.split("."):
            found = getattr(found, name)
    except (ImportError, AttributeError) as error:
        msg = f"foreign: target={target!r} cannot be imported ({error}); install its package or correct the path"
        raise ConfigurationError(msg) from error
    return found


def _applicable(situation: Situation, changes: tuple[Edit, ...]) -> None:
    situation.context.apply(changes)

"""A scenario is a conversation whose user turns are fixed and whose answers are produced live, with real tools."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from compaction_lab.conversation.messages import JSON, Message, ToolDefinition
from compaction_lab.conversation.transcript import Probe


@dataclass(frozen=True, slots=True)
class LiveTool:
    """A tool definition and the function that really runs: JSON arguments in, result text out."""

    definition: ToolDefinition
    run: Callable[[Mapping[str, JSON]], str]


@dataclass(frozen=True, slots=True)
class RubricScore:
    """How a turn's answer did: the share of required facts it states, less what it invented (0 to 1)."""

    score: float
    required: int
    stated: int
    missing: tuple[str, ...] = ()
    invented: tuple[str, ...] = ()
    wrong: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Turn:
    """A user message and, when the scenario judges it, the rubric for the answer."""

    user: str
    judge: Callable[[str], RubricScore] | None = None
    """Scores the turn's whole answer text; ``None`` when the turn has no rubric."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """One live conversation: its opening messages, its tools, its turns, and probes asked with tools off.

    ``probes`` maps a turn number (1-based) to the probes asked after that turn.
    """

    id: str
    language: str
    opening: tuple[Message, ...]
    tools: tuple[LiveTool, ...]
    turns: tuple[Turn, ...]
    probes: Mapping[int, tuple[Probe, ...]] = field(default_factory=dict)

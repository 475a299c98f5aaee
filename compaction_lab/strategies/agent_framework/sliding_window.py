"""Agent Framework's ``SlidingWindowStrategy``: keep the newest groups."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import ClassVar

from compaction_lab.strategies.agent_framework.acting import Acts
from compaction_lab.strategies.agent_framework.checks import refuse
from compaction_lab.strategies.agent_framework.ledger import Ledger
from compaction_lab.strategies.base import Situation
from compaction_lab.strategies.registry import register


@register("agent_framework/sliding_window", semantics=1)
@dataclass(frozen=True, slots=True)
class SlidingWindow(Acts):
    """Exclude all but the newest ``keep_last_groups`` groups outside system groups (mechanism M2).

    Parameters
    ----------
    keep_last_groups
        Groups, not turns: the window may begin with an assistant's message.
    preserve_system
        Keep system groups; without them a list of nothing but system messages becomes empty.
    """

    keep_last_groups: int
    preserve_system: bool = True

    from_last: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Check the parameters as the framework does."""
        found = self.keep_last_groups
        refuse(found <= 0, f"keep_last_groups must be more than 0, got {found}")

    def act(self, ledger: Ledger, situation: Situation) -> bool:  # noqa: ARG002 - the protocol's shape
        """Exclude what is older than the window."""
        if ledger.talk < self.keep_last_groups and self.preserve_system:
            return False
        talk = (group for group in ledger.newest() if group.kind != "system")
        kept = set(islice(talk, self.keep_last_groups))
        changed = False
        for group in ledger.oldest():
            if group in kept:
                if self.preserve_system:
                    break
            elif group.kind != "system" or not self.preserve_system:
                changed = ledger.exclude(group) or changed
        if changed:
            ledger.reasons.append(f"older than the last {self.keep_last_groups} groups")
        return changed

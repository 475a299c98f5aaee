"""How much of a session Agno puts before a run, as agno 3.1.10 behaves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from compaction_lab.conversation.log import is_system
from compaction_lab.strategies.mechanisms.window import Item, Shown, Window
from compaction_lab.strategies.registry import at_least, register


@register("agno/num_history_runs", semantics=1)
@dataclass(frozen=True, slots=True)
class NumHistoryRuns(Window):
    """Begin a run with the last runs, or the last messages, of its session (mechanism M2); a run is a turn.

    Parameters
    ----------
    num_history_runs
        Runs before the present one that are sent; 3 when neither number is given.
    num_history_messages
        Messages of the session that are sent instead; results at the front are dropped.
    """

    num_history_runs: int | None = None
    num_history_messages: int | None = None

    def __post_init__(self) -> None:
        """Check the parameters."""
        for name in ("num_history_runs", "num_history_messages"):
            if getattr(self, name) is not None:
                at_least(self, name, 0)

    def choose(self, shown: Shown) -> Sequence[Item] | None:
        """Keep the tail of what precedes the newest user message, and everything from it on."""
        messages = shown.messages
        users = [at for at, message in enumerate(messages) if message.role == "user"]
        if not users:
            return None
        now = users[-1]
        if self.num_history_runs is None and self.num_history_messages is not None:
            session = [at for at in range(now) if not is_system(messages[at])]
            kept = session[max(0, len(session) - self.num_history_messages) :]
            while kept and messages[kept[0]].role == "tool":
                kept.pop(0)
        else:
            runs = 3 if self.num_history_runs is None else self.num_history_runs
            starts = users[:-1]
            start = starts[max(0, len(starts) - runs)] if runs and starts else now
            start = 0 if runs >= len(starts) > 0 else start
            kept = list(range(start, now))
        spared = set(kept) | {at for at in range(now) if is_system(messages[at])}
        return [*sorted(spared), *range(now, len(messages))]

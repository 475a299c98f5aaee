"""``ChatReducerCompactionStrategy``: any other strategy, given the included messages as a plain list."""

from __future__ import annotations

from dataclasses import dataclass

from compaction_lab.conversation.context import Context, Key, Placed
from compaction_lab.conversation.log import Log
from compaction_lab.strategies.agent_framework_dotnet.base import IndexStrategy, Work
from compaction_lab.strategies.agent_framework_dotnet.index import MessageIndex, Update
from compaction_lab.strategies.agent_framework_dotnet.triggers import IndexTrigger
from compaction_lab.strategies.base import Situation, Strategy, steps
from compaction_lab.strategies.registry import register


@register("agent_framework_dotnet/chat_reducer", semantics=1)
@dataclass(frozen=True, slots=True)
class ChatReducer(IndexStrategy):
    """Hand the included messages to another strategy; fewer messages replace the whole index, else nothing happens.

    Parameters
    ----------
    reducer
        Any strategy of the lab; it starts afresh each time, as an ``IChatReducer`` does.
    trigger
        When to act.
    """

    reducer: Strategy
    trigger: object = "always"
    update: Update = "content"

    def work(self, index: MessageIndex, reached: IndexTrigger) -> Work:  # noqa: ARG002 - a reducer has no steps
        """Reduce once."""
        shown = index.visible
        log = Log(placed.message for placed in shown)
        context = Context(log, len(log))
        situation = Situation(context, "before_call", index.counter)
        done = yield from steps(self.reducer, situation)
        reduced = context.apply(done.edits)
        if done.outcome != "ok":
            index.outcome = done.outcome
        if len(reduced) >= len(shown):
            return False
        index.replace(_placed(shown, reduced))
        return True


def _placed(shown: list[Placed], reduced: Context) -> list[Placed]:
    """Return the reduced list at its places in the conversation, new messages behind those they follow."""
    placed: list[Placed] = []
    last: Key = (-1, 0)
    for entry in reduced.entries():
        at, rank = entry.key
        index, offset = shown[at].key
        last = max((index, offset + rank), (last[0], last[1] + 1))
        placed.append(Placed(last, entry.message))
    return placed

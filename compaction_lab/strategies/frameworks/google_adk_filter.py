"""Google ADK's ``ContextFilterPlugin``, as google-adk 2.13.0 behaves; instructions are not in its list of contents."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from compaction_lab.conversation.log import is_system
from compaction_lab.conversation.messages import Message
from compaction_lab.strategies.mechanisms.window import Item, Shown, Window
from compaction_lab.strategies.registry import at_least, register


@register("google_adk/context_filter_plugin", semantics=1)
@dataclass(frozen=True, slots=True)
class ContextFilterPlugin(Window):
    """Keep the last invocations; the cut moves back until no result loses its call (mechanisms M2, M5).

    An invocation begins with a user message, or several in a row.

    Parameters
    ----------
    num_invocations_to_keep
        Invocations kept; all when not given or 0.
    remove_amount
        Invocations beyond these before anything is dropped.
    """

    num_invocations_to_keep: int | None = None
    remove_amount: int = 1

    def __post_init__(self) -> None:
        """Check the parameters."""
        at_least(self, "remove_amount", 1)

    def choose(self, shown: Shown) -> Sequence[Item] | None:
        """Keep the tail."""
        keep = self.num_invocations_to_keep
        messages = shown.messages
        contents = [at for at, message in enumerate(messages) if not is_system(message)]
        roles = [messages[at].role for at in contents]
        starts = [n for n, role in enumerate(roles) if role == "user" and (n == 0 or roles[n - 1] != "user")]
        if not keep or keep < 0 or len(starts) < keep + self.remove_amount:
            return None
        cut = _before_calls([messages[at] for at in contents], starts[-keep])
        gone = set(contents[:cut])
        return [at for at in range(len(messages)) if at not in gone]


def _before_calls(contents: Sequence[Message], cut: int) -> int:
    """Return the last place at or before ``cut`` from which every result has its call."""
    needed: set[str] = set()
    for at in range(len(contents) - 1, -1, -1):
        message = contents[at]
        if message.role == "tool" and message.call_id:
            needed.add(message.call_id)
        needed.difference_update(call.id for call in message.calls)
        if at <= cut and not needed:
            return at
    return 0

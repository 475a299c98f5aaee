"""``SummarizationCompactionStrategy``: the oldest groups become one summary."""

from __future__ import annotations

from dataclasses import dataclass

from compaction_lab.conversation.messages import Message, system
from compaction_lab.models.base import ModelRequest
from compaction_lab.strategies.agent_framework_dotnet.base import Defaults, IndexStrategy, Work, minimum
from compaction_lab.strategies.agent_framework_dotnet.index import MessageIndex, Update
from compaction_lab.strategies.agent_framework_dotnet.triggers import IndexTrigger
from compaction_lab.strategies.registry import register

PROMPT = (
    "Summarise the conversation that follows, briefly and factually. Keep facts, decisions and preferences of the "
    "user, what later turns will need, and what tools returned and why it mattered. Leave out courtesies and "
    "repetition."
)
UNAVAILABLE = "[Summary unavailable]"


@register("agent_framework_dotnet/summarization", semantics=1)
@dataclass(frozen=True, slots=True)
class Summarization(IndexStrategy):
    """Replace the oldest groups by one assistant-role summary, as many as the target asks for (mechanism M18).

    The summariser receives the groups' messages as they are, after the prompt. A blank reply replaces the history all
    the same; only an error leaves it as it was.

    Parameters
    ----------
    trigger
        When to act.
    minimum_preserved
        Newest groups, system groups apart, that stay at least; as ``defaults`` says (documented 4, source 8) when not
        given.
    summarization_prompt
        The summariser's instruction; the lab's own wording when not given.
    target
        When to stop marking groups; once the trigger no longer holds when not given.
    """

    trigger: object
    minimum_preserved: int | None = None
    summarization_prompt: str | None = None
    target: object = None
    defaults: Defaults = "documented"
    update: Update = "content"

    def work(self, index: MessageIndex, reached: IndexTrigger) -> Work:
        """Mark groups, oldest first, and ask for one summary of all."""
        groups = [group for group in index.included if group.kind != "System"]
        most = len(groups) - minimum(self.minimum_preserved, self.defaults, 4, 8)
        marked = []
        for group in groups[: max(0, most)]:
            index.exclude(group)
            marked.append(group)
            if reached(index):
                break
        if not marked:
            return False
        prompt = PROMPT if self.summarization_prompt is None else self.summarization_prompt
        messages: tuple[Message, ...] = tuple(message for group in marked for message in group.messages)
        (reply,) = yield (ModelRequest((system(prompt), *messages), "summarizer"),)
        if reply.error:
            for group in marked:
                index.include(group)
            index.outcome = f"rejected: summarizer failed ({reply.error})"
            return False
        text = reply.text if reply.text.strip() else UNAVAILABLE
        index.summarise(marked, f"[Summary]\n{text}")
        return True

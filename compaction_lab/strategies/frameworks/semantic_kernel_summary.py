"""Semantic Kernel's ChatHistorySummarizationReducer: what is before a safe index becomes one assistant-role summary."""

from __future__ import annotations

from dataclasses import dataclass, replace

from compaction_lab.conversation.context import Edit, Placed
from compaction_lab.conversation.log import is_system
from compaction_lab.strategies.base import Compaction, Situation, Steps
from compaction_lab.strategies.reading import Reading
from compaction_lab.strategies.registry import at_least, register
from compaction_lab.strategies.spans import Entries, first_where, is_summary, reading_only, span, without_calls
from compaction_lab.strategies.summaries import INSTRUCTION, Acceptance, Span, Wording, continuing, summarized


@register("semantic_kernel/chat_history_summarization", semantics=1)
@dataclass(frozen=True, slots=True)
class ChatHistorySummarization:
    """Summarise all but the newest ``target_count`` messages once the threshold is passed (semantic-kernel 1.45.0).

    Parameters
    ----------
    target_count
        Messages to keep, the system message counted when it would be cut off.
    threshold_count
        How many more than ``target_count`` start a reduction; within them the cut prefers a user message.
    summarization_instructions
        ``None``: the lab's own.
    use_single_summary
        Whether an earlier summary is summarised again or stays in front.
    include_function_content_in_summary
        Whether the summariser sees tool calls and results; by default it does not.
    """

    target_count: int
    threshold_count: int = 0
    summarization_instructions: str | None = None
    use_single_summary: bool = True
    include_function_content_in_summary: bool = False

    def __post_init__(self) -> None:
        """Check the parameters."""
        at_least(self, "target_count", 1)
        at_least(self, "threshold_count", 0)

    def __call__(self, situation: Situation) -> Steps:
        """Summarise when there are too many messages."""
        return continuing(self._summarize, situation)

    def _summarize(self, situation: Situation) -> Steps:
        history = list(situation.context.entries())
        if len(history) <= self.target_count + self.threshold_count:
            return Compaction()
        first = first_where(history, lambda message: not is_summary(message), len(history))
        insertion = 0 if first == len(history) else first
        system = first_where(history, is_system)
        cut_off = 0 <= system < len(history) - self.target_count
        stop = safe_index(history, self.target_count, self.threshold_count, insertion, system_is_cut_off=cut_off)
        if stop is None:
            return Compaction()
        start = 0 if self.use_single_summary else insertion
        read = self._read(history, start, stop)
        if not read:
            return Compaction()
        old = span(history, start, stop)
        hidden = tuple(entry for entry in old.hidden if system < 0 or entry is not history[system])
        prompt = self.summarization_instructions or INSTRUCTION
        wording = Wording(prompt, prompt, "", role="assistant", max_summary_tokens=None)
        new = reading_only(Span(hidden, old.before), read)
        done = yield from summarized(situation, new, wording, Reading(), Acceptance(only_if_shorter=False))
        if not done.edits or not start <= system < stop or not start or history[system].message.pinned:
            return done
        # The summaries in front stay, and the system message is put before them.
        moved = Edit("inserted", (), Placed((-1, 1), history[system].message))
        return replace(done, edits=(*done.edits, Edit("dropped", (history[system].key,)), moved))

    def _read(self, history: Entries, start: int, stop: int) -> list[Placed]:
        if not self.include_function_content_in_summary:
            shown = [entry for entry in history[start:stop] if without_calls(entry.message)]
            return [entry for entry in shown if entry.message.role not in ("system", "developer")]
        return _with_pairs(history, start, stop)


def safe_index(history: Entries, target: int, threshold: int, offset: int, *, system_is_cut_off: bool) -> int | None:
    """Return where the kept part begins, ``None`` when nothing is to be reduced.

    The cut moves back over a run of tool calls and results, then to a user message within the threshold window.
    """
    if system_is_cut_off:
        target -= 1
        if target <= 0:
            return len(history)
    threshold_index = len(history) - threshold - target
    if threshold_index <= offset:
        return None
    at = len(history) - target
    while at >= offset and history[at].message.role not in ("system", "developer"):
        if without_calls(history[at].message):
            break
        if at - 1 < offset or without_calls(history[at - 1].message):
            break
        at -= 1
    safe = at
    while at >= threshold_index:
        if history[at].message.role == "user":
            return at
        at -= 1
    return safe


def _with_pairs(history: Entries, start: int, stop: int) -> list[Placed]:
    """Return a range without system messages; the result last paired with a call follows the call directly.

    Of parallel results all but that one come after it: the framework's order, kept as it is.
    """
    calls: dict[str, int] = {}
    for at, entry in enumerate(history):
        calls.update((call.id, at) for call in entry.message.calls if call.id)
    partner: dict[int, int] = {}
    for at, entry in enumerate(history):
        message = entry.message
        if message.role == "tool" and message.call_id in calls:
            made = calls.pop(message.call_id)
            partner[made], partner[at] = at, made
    left = list(range(start, stop))
    read: list[Placed] = []
    at = 0
    while at < len(left):
        index = left[at]
        at += 1
        if history[index].message.role in ("system", "developer"):
            continue
        read.append(history[index])
        other = partner.get(index, -1)
        if index < other < stop:
            read.append(history[other])
            if other in left:
                left.remove(other)
    return read

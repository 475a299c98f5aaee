"""SWE-agent's history processors (repository snapshot; the package of that name on PyPI is another project).

Every message that is neither a system's nor an assistant's is an observation; the first one is the task.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Literal

from compaction_lab.conversation.context import Context, Placed
from compaction_lab.strategies.base import Compaction, Situation
from compaction_lab.strategies.mechanisms.clearing import ClearResults
from compaction_lab.strategies.mechanisms.patterns import RemovePatterns
from compaction_lab.strategies.mechanisms.recency import end_of
from compaction_lab.strategies.mechanisms.rewriting import Draft, rewrite_before
from compaction_lab.strategies.mechanisms.superseded import Latest, supersede_older
from compaction_lab.strategies.mechanisms.tool_results import tool_of
from compaction_lab.strategies.registry import at_least, register

_WINDOW_LINE = re.compile(r"^(\d+)\:.*?(\n|$)", re.MULTILINE)
_WINDOW_FILE = re.compile(r"\[File:\s+(.*)\s+\(\d+\s+lines\ total\)\]")


@register("sweagent/last_n_observations", semantics=1)
@dataclass(frozen=True, slots=True)
class LastNObservations:
    """Put a line count in the place of all but the first and the newest observations.

    Parameters
    ----------
    n
        Newest observations that stay, between ``n`` and ``n + polling - 1`` with polling.
    polling
        Observations after which the window moves; more than 1 spares the prompt cache.
    always_remove_output_for_tags, always_keep_output_for_tags
        Labels of observations that always go, or always stay; the former wins.
    """

    n: int
    polling: int = 1
    always_remove_output_for_tags: tuple[str, ...] = ("remove_output",)
    always_keep_output_for_tags: tuple[str, ...] = ("keep_output",)

    def __post_init__(self) -> None:
        """Check the parameters."""
        at_least(self, "n", 1)
        at_least(self, "polling", 1)

    def __call__(self, situation: Situation) -> Compaction:
        """Clear."""
        return ClearResults(
            keep_last=self.n,
            of="observations",
            keep_first=1,
            every=self.polling,
            keep_tags=self.always_keep_output_for_tags,
            clear_tags=self.always_remove_output_for_tags,
            placeholder="Old environment output: ({lines} lines omitted)",
            placeholder_media=" ({images} images omitted)",
            only_if_shorter=False,
            spare_unread=False,
        )(situation)


@register("sweagent/tag_tool_call_observations", semantics=1)
@dataclass(frozen=True, slots=True)
class TagToolCallObservations:
    """Label messages that call certain tools, for ``last_n_observations`` after it in a pipeline; nothing else changes.

    Parameters
    ----------
    tags
        Labels to add.
    function_names
        Tools whose calls are meant.
    label
        SWE-agent labels the ``actions``, on which the labels have no effect; ``observations`` labels their results.
    """

    tags: tuple[str, ...] = ("keep_output",)
    function_names: tuple[str, ...] = ()
    label: Literal["actions", "observations"] = "actions"

    def __call__(self, situation: Situation) -> Compaction:
        """Label."""
        # From the history each time: a label is no part of a prompt, so that nothing counts as a compaction.
        return rewrite_before(replace(situation, last=None), end_of(situation.context), self._label, reason="labelled")

    def _label(self, draft: Draft, entry: Placed) -> bool:
        message = entry.message
        names = {call.name for call in message.calls}
        if self.label == "observations" and message.role == "tool":
            names = {tool_of(draft.context.log, entry)}
        elif self.label == "observations":
            names = set()
        tags = (*message.tags, *(tag for tag in self.tags if tag not in message.tags))
        if names.isdisjoint(self.function_names) or tags == message.tags:
            return False
        draft.put("masked", entry.key, replace(message, tags=tags))
        return True


@register("sweagent/closed_window_history", semantics=1)
@dataclass(frozen=True, slots=True)
class ClosedWindowHistoryProcessor:
    """Cut older views of a file window out of observations in the user's role.

    Parameters
    ----------
    headerless
        What becomes of a user message with lines like ``1: ...`` but no file header: SWE-agent ``drop`` s it, the task
        included (bug list B31); ``keep`` is the repaired form.
    """

    headerless: Literal["drop", "keep"] = "drop"

    def __call__(self, situation: Situation) -> Compaction:
        """Cut."""
        done = supersede_older(situation, self._window, self._cut, reason="windows shown again since")
        if self.headerless == "keep":
            return done
        base = situation.last if done.base == "last" and situation.last is not None else situation.context
        draft = Draft(base, situation.counter)
        start = situation.memory.edge if done.base == "last" and isinstance(situation.memory, Latest) else None
        for entry in base.entries(start):
            if _is_plain_user(entry) and not entry.message.pinned and _is_headerless(entry.message.text):
                draft.drop(entry.key)
        return replace(done, edits=(*done.edits, *draft.edits), reason=done.reason or _reason(draft))

    def _window(self, context: Context, entry: Placed) -> str | None:  # noqa: ARG002 - the walk's shape
        if not _is_plain_user(entry) or not _WINDOW_LINE.search(entry.message.text):
            return None
        found = _WINDOW_FILE.search(entry.message.text)
        return None if found is None else found.group(1)

    def _cut(self, draft: Draft, entry: Placed) -> None:
        text = entry.message.text
        lines = list(_WINDOW_LINE.finditer(text))
        if lines:
            note = f"Outdated window with {len(lines)} lines omitted...\n"
            new = text[: lines[0].start()] + note + text[lines[-1].end() :]
            draft.put("clipped", entry.key, entry.message.replaced(new, entry.message.source))


@register("sweagent/remove_regex", semantics=1)
@dataclass(frozen=True, slots=True)
class RemoveRegex:
    """Delete what matches a pattern from all but the newest history items.

    Parameters
    ----------
    remove
        Regular expressions; ``.`` matches line ends too.
    keep_last
        Newest items that stay unchanged.
    """

    remove: tuple[str, ...] = ("<diff>.*</diff>",)
    keep_last: int = 0

    def __post_init__(self) -> None:
        """Check the parameters by building the mechanism."""
        RemovePatterns(self.remove, self.keep_last)

    def __call__(self, situation: Situation) -> Compaction:
        """Delete."""
        return RemovePatterns(self.remove, self.keep_last)(situation)


def _is_plain_user(entry: Placed) -> bool:
    return entry.message.role == "user" and "demo" not in entry.message.tags


def _is_headerless(text: str) -> bool:
    return bool(_WINDOW_LINE.search(text)) and not _WINDOW_FILE.search(text)


def _reason(draft: Draft) -> str:
    return "windows without a file" if draft.edits else ""

"""Validity call by call: which rules on messages each sent context breaks, checked only when its structure changed.

A stand-in that keeps its message's role, calls and content can break no rule on structure, and messages that are merely
appended can only bring the recording's own faults. So a context is checked when messages were removed or inserted, when
the conversation has grown by a quarter since the last check, and at the first call; in between the last answer holds.
A check costs about the messages it reads; a unit reads at most ``READS_PER_MESSAGE`` times its own length (and 20,000
messages beside it), after which calls whose structure changed are left unchecked and say so.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import cast

from compaction_lab.arm import Firing
from compaction_lab.conversation.context import Context, Edit
from compaction_lab.conversation.log import Log
from compaction_lab.conversation.messages import JSON, Reasoning
from compaction_lab.conversation.validity import check
from compaction_lab.records import Row

RULES = ("V1", "V2", "V3", "V4", "V5", "V6", "V7", "V8", "V9", "V10", "V11", "V12")
"""Rules on one list of messages. V13 to V17 are promises about keys and edits, held by tests of the strategies."""

READS_PER_MESSAGE = 12
FREE_READS = 20_000
_GROWTH = 1.25


@dataclass(slots=True)
class ValidityWatch:
    """Counts what each call's messages break.

    Parameters
    ----------
    log
        The conversation as far as it exists; it may grow.
    """

    log: Log
    _changed: bool = field(init=False, default=True)
    _checked_stop: int = field(init=False, default=0)
    _reads: int = field(init=False, default=0)
    _last: Row | None = field(init=False, default=None)
    _task: int | None = field(init=False, default=None)

    def saw(self, firings: Iterable[Firing]) -> None:
        """Take note of what happened at an occasion."""
        self._changed = self._changed or any(
            not _in_place(edit, firing.before) for firing in firings for edit in firing.edits
        )

    def at_call(self, sent: Context) -> Row | None:
        """Return the number of messages that break each rule at this call, or ``None`` when it was not checked."""
        if not self._changed and sent.stop <= self._checked_stop * _GROWTH + 1:
            return self._last
        if self._reads + len(sent) > READS_PER_MESSAGE * sent.stop + FREE_READS:
            self._last = None
            return None
        self._reads += len(sent)
        self._changed, self._checked_stop = False, sent.stop
        task = self._task_message()
        before = None if task is None else [self.log.messages[task]]
        found = Counter(finding.rule for finding in check(sent.messages, before=before, rules=RULES))
        self._last = cast("dict[str, JSON]", dict(sorted(found.items())))
        return self._last

    def _task_message(self) -> int | None:
        if self._task is None:
            self._task = next((at for at, message in enumerate(self.log.messages) if message.role == "user"), None)
        return self._task


def _in_place(edit: Edit, before: Context) -> bool:
    """Whether an edit leaves every rule on structure as it was."""
    if edit.kind == "restored":
        return all(before.get(key) is not None for key in edit.keys)
    if edit.new is None or edit.keys != (edit.new.key,):
        return False
    old, new = before.get(edit.new.key), edit.new.message
    return (
        old is not None
        and (old.role, old.call_id, old.calls) == (new.role, new.call_id, new.calls)
        and bool(new.parts)
        and bool(new.text.strip())
        and not any(isinstance(part, Reasoning) for part in old.parts)
        and old.role == "tool"
    )

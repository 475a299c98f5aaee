"""What the context view draws: every call of every unit as small differences, every text once."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from compaction_lab.conversation.context import Context, Key
from compaction_lab.conversation.messages import JSON, Message
from compaction_lab.conversation.tokens import TokenCounter, tokenizer
from compaction_lab.records import Row
from compaction_lab.strategies.reading import rendered
from compaction_lab.sweep.inspection import Played, played_calls
from compaction_lab.sweep.loading import Run
from compaction_lab.sweep.store import Unit

TEXT_LIMIT = 20_000
"""Characters of one message that the page holds; the run's folder holds the rest."""


def context_data(run: Run) -> dict[str, JSON]:
    """Return the page's data of a run: units with their calls, and the messages they show.

    Each call lists what differs from the call before: ``[kind, index, rank, message]`` with ``kind`` what happened
    (``dropped``, ``masked``, ``collapsed``, ``clipped``, ``summarised``, ``inserted``, ``restored``) and ``message`` a
    number in ``messages``, or -1 for what is hidden. New messages of the log follow from ``stop``.
    """
    texts = _Texts(TokenCounter(tokenizer(_tokenizer(run))))
    units: list[JSON] = [_unit(run, unit, texts) for unit in sorted(run.unit_rows) if run.log(unit)]
    return {"messages": cast("JSON", texts.rows), "units": units}


class _Texts:
    """Numbers messages; equal ones share a number."""

    def __init__(self, counter: TokenCounter) -> None:
        self.rows: list[JSON] = []
        self._numbers: dict[object, int] = {}
        self._counter = counter

    def number(self, message: Message) -> int:
        """Return the number of a message, adding it at its first sight."""
        key = (message.wire, message.source)
        found = message.memo.get("page")
        if isinstance(found, int) and found < len(self.rows):
            return found
        found = self._numbers.get(key)
        if found is None:
            found = self._numbers[key] = len(self.rows)
            text = rendered(message)
            cut = (
                text
                if len(text) <= TEXT_LIMIT
                else f"{text[:TEXT_LIMIT]}\n… {len(text) - TEXT_LIMIT:,} characters more"
            )
            calls = "tool call" if message.calls else "tool result" if message.role == "tool" else message.role
            kind = "summary" if message.source == "summary" else calls
            self.rows.append([kind, self._counter.message(message), cut])
        message.memo["page"] = found
        return found


def _unit(run: Run, unit: Unit, texts: _Texts) -> JSON:
    cell = run.cell_by_key[unit[0]]
    rows = [row for row in run.unit_rows_of("calls", unit) if row["purpose"] == "agent"]
    calls: list[JSON] = []
    last: Context | None = None
    log: list[JSON] = []
    for row, played in zip(rows, played_calls(run, unit), strict=False):
        log.extend(texts.number(message) for message in played.sent.log.messages[len(log) : played.stop])
        changes = _changes(last, played, texts.number)
        last = played.sent
        calls.append([_numbers(row), played.stop, cast("JSON", changes)])
    return {
        "arm": cell.arm,
        "model": cell.model,
        "dataset": cell.dataset,
        "seed": cell.seed,
        "transcript": unit[1],
        "trial": unit[2],
        "log": log,
        "calls": calls,
        "misses": cast("JSON", _misses(run, unit)),
    }


def _numbers(row: Row) -> JSON:
    names = (
        "call",
        "turn",
        "input_tokens",
        "cache_read_tokens",
        "context_tokens_before",
        "compacted",
        "cost_cached_usd",
        "first_changed_token",
    )
    return [row.get(name) for name in names]


def _changes(last: Context | None, played: Played, number: Callable[[Message], int]) -> list[list[JSON]]:
    """Return what differs from the last call's context beside the log's new messages, in order of place."""
    base = (Context(played.sent.log) if last is None else last).advance(played.stop)
    changes: dict[Key, list[JSON]] = {}
    for edit in base.difference(played.sent):
        for key in edit.keys:
            back = edit.kind == "restored"
            kind = edit.kind if back else played.kinds.get(key, edit.kind)
            changes[key] = [kind, *key, number(played.sent.log.messages[key[0]]) if back else -1]
        if edit.new is not None:
            key = edit.new.key
            changes[key] = [played.kinds.get(key, edit.kind), *key, number(edit.new.message)]
    return [changes[key] for key in sorted(changes)]


def _misses(run: Run, unit: Unit) -> list[list[JSON]]:
    """Return ``[call, turn, probe, kind]`` of what was not there when it was needed."""
    missed = []
    for row in run.unit_rows_of("probes", unit):
        score = row.get("score")
        if isinstance(score, (int, float)) and score < 1:
            missed.append([row.get("call"), row["turn"], row["probe"], row["kind"]])
    return missed


def _tokenizer(run: Run) -> str:
    names = {str(cell.config.get("tokenizer") or "o200k_base") for cell in run.cell_by_key.values()}
    return min(names, default="o200k_base")

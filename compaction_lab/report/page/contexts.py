"""What the context view draws: every call of every unit as small differences, every text once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import accumulate
from typing import cast

from compaction_lab.analysis import arm_order, baseline_arm
from compaction_lab.conversation.context import Context, Key
from compaction_lab.conversation.messages import JSON, Message
from compaction_lab.conversation.printable import printable
from compaction_lab.conversation.tokens import TokenCounter, tokenizer
from compaction_lab.importers.lab import message_from_lab
from compaction_lab.quality.evidence import searchable
from compaction_lab.records import Row
from compaction_lab.sweep.inspection import Played, played_calls
from compaction_lab.sweep.loading import Run
from compaction_lab.sweep.store import Unit
from compaction_lab.sweep.written import written

TEXT_LIMIT = 20_000
"""Characters of one message that the page holds; the run's folder holds the rest."""

CALL_LIMIT = 30_000
"""Calls whose contexts the page holds (some two megabytes), unless asked for more sessions."""

LABEL_LIMIT = 160
"""Characters of what a miss is called."""

CALL_NUMBERS = (
    "turn",
    "input_tokens",
    "cache_read_tokens",
    "context_tokens_before",
    "compacted",
    "cost_usd",
)
"""What the page says of a call, in this order."""


def shown_sessions(run: Run, most: int | None = None) -> list[tuple[str, str]]:
    """Return the sessions, as dataset and transcript, whose contexts a page shows: those with the most misses first.

    Parameters
    ----------
    run
        A run.
    most
        How many; ``None``: as many as have ``CALL_LIMIT`` calls in all arms together, at least one.
    """
    names = ["dataset", "transcript"]
    sizes: Counter[tuple[str, str]] = Counter()
    units = run.units[[*names, "model_calls"]].fillna({"model_calls": 0})  # a failed unit has none
    for dataset, transcript, calls in units.itertuples(index=False):
        sizes[dataset, transcript] += calls
    missing = run.probes[run.probes["score"].astype(float) < 1]
    missed = Counter(missing[names].itertuples(index=False, name=None))
    ordered = sorted(sizes, key=lambda session: (-missed[session], session))
    if most is not None:
        return ordered[:most]
    sums = accumulate(sizes[session] for session in ordered)
    return [
        session for at, (session, calls) in enumerate(zip(ordered, sums, strict=True)) if not at or calls <= CALL_LIMIT
    ]


def context_data(run: Run, sessions: Collection[tuple[str, str]] | None = None) -> dict[str, JSON]:
    """Return the page's data of a run: units with their calls, and the messages they show.

    Of ``sessions`` alone (dataset and transcript), if given.

    Arms follow the order of tables, the baseline first. Each call is ``[numbers, stop, changes]``; a change is ``[kind,
    index, rank, message]``, what differs from the call before, with ``kind`` what happened (``dropped``, ``masked``,
    ``collapsed``, ``clipped``, ``summarised``, ``inserted``, ``restored``) and ``message`` a number in ``messages``, or
    -1 for what is hidden. New messages of the log follow from ``stop``. A message is ``[kind, tokens, text]``; its text
    is cut, and written so that nothing in it acts on a screen. A miss is ``[call, turn, label, source]``, with the
    index of the message that said what was missed as ``source``, or -1.
    """
    texts = _Texts(TokenCounter(tokenizer(_tokenizer(run))))
    arms = [cell.arm for cell in run.cell_by_key.values()]
    places = {arm: place for place, arm in enumerate(arm_order(arms, baseline_arm(run.cells)))}

    def place(unit: Unit) -> tuple[object, ...]:
        cell = run.cell_by_key[unit[0]]
        return cell.dataset, unit[1], cell.model, cell.seed, unit[2], places[cell.arm]

    def is_shown(unit: Unit) -> bool:
        return sessions is None or (run.cell_by_key[unit[0]].dataset, unit[1]) in sessions

    chosen = sorted(filter(is_shown, run.unit_rows), key=place)
    units: list[JSON] = [_unit(run, unit, texts) for unit in chosen if run.log(unit)]
    return {"messages": cast("JSON", texts.rows), "units": units}


class _Texts:
    """Numbers messages; equal ones share a number."""

    def __init__(self, counter: TokenCounter) -> None:
        self.rows: list[JSON] = []
        self._numbers: dict[object, int] = {}
        self._counter = counter

    def number(self, message: Message) -> int:
        """Return the number of a message, adding it at its first sight."""
        found = message.memo.get("page")
        if isinstance(found, int) and found < len(self.rows):
            return found
        key = (message.wire, message.source)
        found = self._numbers.get(key)
        if found is None:
            found = self._numbers[key] = len(self.rows)
            text = written(message)
            more = len(text) - TEXT_LIMIT
            cut = text[:TEXT_LIMIT] + (f"\n… {more:,} characters more" if more > 0 else "")
            self.rows.append([_kind(message), self._counter.message(message), cut])
        message.memo["page"] = found
        return found


def _kind(message: Message) -> str:
    if message.source == "summary":
        return "summary"
    if message.calls:
        return "tool call"
    return {"tool": "tool result", "developer": "system"}.get(message.role, message.role)


def _unit(run: Run, unit: Unit, texts: _Texts) -> JSON:
    cell = run.cell_by_key[unit[0]]
    rows = [row for row in run.unit_rows_of("calls", unit) if row["purpose"] == "agent"]
    cost = f"cost_{run.cost_kind}_usd"
    calls: list[JSON] = []
    last: Context | None = None
    log: list[JSON] = []
    for row, played in zip(rows, played_calls(run, unit), strict=False):
        log.extend(texts.number(message) for message in played.sent.log.messages[len(log) : played.stop])
        changes = _changes(last, played, texts.number)
        last = played.sent
        numbers = {**row, "cost_usd": row.get(cost)}
        calls.append([[numbers.get(name) for name in CALL_NUMBERS], played.stop, cast("JSON", changes)])
    return {
        "arm": printable(cell.arm),
        "model": printable(cell.model),
        "dataset": printable(cell.dataset),
        "seed": cell.seed,
        "transcript": printable(unit[1]),
        "trial": unit[2],
        "log": log,
        "calls": calls,
        "misses": cast("JSON", _misses(run, unit)),
    }


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
    """Return what was not there when it was needed: ``[call, turn, label, source]``, call -1 where only the turn is."""
    log = run.log(unit)
    missed: list[list[JSON]] = []
    for row in run.unit_rows_of("probes", unit):
        score = row.get("score")
        if not isinstance(score, (int, float)) or score >= 1:
            continue
        place = row.get("reference")
        if isinstance(place, Mapping):
            call, label, source = _reference(run, log, cast("Mapping[str, JSON]", place), row)
        else:
            call, label, source = -1, _asked(row), -1
        short = label if len(label) <= LABEL_LIMIT else f"{label[:LABEL_LIMIT]}…"
        missed.append([call, row["turn"], printable(" ".join(short.split())), source])
    return missed


def _reference(run: Run, log: Sequence[str], place: Mapping[str, JSON], row: Row) -> tuple[int, str, int]:
    use, source = place.get("use"), place.get("source")
    call = place.get("call")
    name = str(row["probe"])
    if isinstance(use, list):
        at, start, end = cast("list[int]", use)
        name = searchable(message_from_lab(run.messages[log[at]]))[start:end]
    age = row.get("age_tokens")
    back = f", last said {age:,.0f} tokens before" if isinstance(age, (int, float)) else ""
    number = call if isinstance(call, int) else -1
    return number, f"{place.get('kind')} {name}{back}", cast("int", source[0]) if isinstance(source, list) else -1


def _asked(row: Row) -> str:
    gold, answer = row.get("gold"), row.get("answer")
    expected = gold[0] if isinstance(gold, list) and gold else gold
    words = f"{row['kind']} {row['probe']}"
    if isinstance(expected, str) and row["kind"] != "rubric":
        words += f": expected {expected!r}"
        words += f", answered {answer!r}" if isinstance(answer, str) and answer.strip() else ", not answered"
    return words


def _tokenizer(run: Run) -> str:
    names = {str(cell.config.get("tokenizer") or "o200k_base") for cell in run.cell_by_key.values()}
    return min(names, default="o200k_base")

"""The list that Agent Framework keeps: every message with its id, group and exclusion flag, changed by difference.

The framework stores these notes on the messages and walks the whole list for every question. A ledger holds the same
notes with running sums and ordered groups beside them, so that a call costs what changed since the last one. It can be
taken back to any earlier version of itself, which is what makes it a strategy's memory.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from compaction_lab.conversation.context import Context, Edit, EditKind, Key, Placed
from compaction_lab.conversation.log import Log
from compaction_lab.conversation.messages import Message, Text
from compaction_lab.strategies.agent_framework.contents import facets
from compaction_lab.strategies.agent_framework.entries import (
    START,
    Entry,
    Group,
    Label,
    Rows,
    between,
    by_first,
    by_label,
    entries_of,
    label_of,
    row_of,
)
from compaction_lab.strategies.agent_framework.grouping import Kind, spans
from compaction_lab.strategies.agent_framework.tokens import Tokenizer, count


@dataclass(slots=True)
class _Mark:
    """What a version of a ledger was, beside what its journal can undo."""

    journal: int
    stop: int
    annotated: int
    anchor: Label
    failures: int
    turn: int
    rule: Tokenizer | None
    mixed_rules: bool
    disturbed: bool


@dataclass(slots=True)
class Ledger:
    """The list with its notes.

    Attributes
    ----------
    entries
        Every message, excluded ones included, in list order.
    stop
        How many messages of the log have entered.
    included, talk, tokens, hidden_tokens
        Messages not excluded; those of them outside system groups; tokens of those counted, and of the excluded ones.
    failures
        Summaries that failed in a row.
    turn
        The turn of the conversation in which it was last used.
    afresh
        Whether what is excluded stands for what a strategy, starting from scratch, would exclude again.
    """

    entries: list[Entry] = field(default_factory=list)
    stop: int = 0
    included: int = 0
    talk: int = 0
    tokens: int = 0
    hidden_tokens: int = 0
    failures: int = 0
    turn: int = 0
    afresh: bool = False
    version: int = 0
    reasons: list[str] = field(default_factory=list)
    outcome: str = "ok"
    groups: dict[str, Group] = field(default_factory=dict)
    _live: list[Group] = field(default_factory=list)
    _live_tools: list[Group] = field(default_factory=list)
    _dead: int = 0
    _dead_tools: int = 0
    _first_user: Group | None = None
    _annotated: int = 0
    _anchor: Label = START
    _tangled: Label = (-2, 0)
    _ids: set[str] = field(default_factory=set)
    _open: dict[tuple[str, str], list[Entry]] = field(default_factory=dict)
    _uncounted: list[Entry] = field(default_factory=list)
    _rule: Tokenizer | None = None
    _mixed_rules: bool = False
    _standing: dict[Key, Entry] = field(default_factory=dict)
    _edits: list[Edit] = field(default_factory=list)
    _dropped: list[Key] = field(default_factory=list)
    _crowded: bool = False
    _unlisted: bool = False
    _odd_ids: bool = False
    _disturbed: bool = False
    _journal: list[tuple[Entry, str, object]] = field(default_factory=list)
    _marks: list[_Mark] = field(default_factory=list)

    @classmethod
    def fresh(cls, context: Context, stop: int) -> Ledger:
        """Return a ledger of what is visible before log index ``stop``."""
        ledger = cls()
        ledger._mark()
        ledger.enter(context, stop)
        return ledger

    def enter(self, context: Context, stop: int) -> None:
        """Append what a context shows from where the ledger ends to log index ``stop``, and annotate it."""
        for placed in context.entries((self.stop, 0) if self.stop else None, (stop, 0)):
            entry = Entry(placed.message, label_of(placed.key), placed.key)
            if placed.key[1]:
                self._journal.append((entry, "insert", None))
            self._admit(entry)
        self.stop = stop
        self.annotate()

    def continue_log(self, log: Log, stop: int) -> None:
        """Append the log's messages up to ``stop`` as they are, and annotate them."""
        for index in range(self.stop, stop):
            self._admit(Entry(log.messages[index], (index, 0), (index, 0)))
        self.stop = stop
        self.annotate()

    def follow(self, context: Context, stop: int) -> None:
        """Adopt what others did to the history: hidden messages are excluded, new ones enter unannotated."""
        shown = {placed.key: placed.message for placed in context.entries(None, (self.stop, 0))}
        gap = self._annotated
        for position, entry in enumerate(self.entries):
            message = shown.get(entry.key)
            if entry.excluded and entry.inserted and message is not entry.message:
                message = None
            if (message is None) != entry.excluded:
                self._journal.append((entry, "flip", None))
                entry.excluded = message is None
            if message is None:
                continue
            del shown[entry.key]
            if message is not entry.message:
                self._journal.append((entry, "message", entry.message))
                entry.become(message)
                gap = min(gap, position)
        for key, message in shown.items():
            entries = self.entries
            position = next((at for at, e in enumerate(entries) if not e.excluded and e.key > key), len(entries))
            entry = Entry(message, label_of(key), key)
            if position < len(entries):
                entry.label = between(entries[position - 1] if position else None, entries[position])
            entries.insert(position, entry)
            self._journal.append((entry, "insert", None))
            gap = min(gap, position)
        self._annotated = gap
        self._reindex()
        self.enter(context, stop)

    def _admit(self, entry: Entry) -> None:
        self.entries.append(entry)
        self._note(entry)

    def _note(self, entry: Entry) -> None:
        """Take an entry into the sums and the index of open calls; entries come in list order."""
        if entry.id:
            self._odd_ids = self._odd_ids or entry.id in self._ids or entry.message.id.startswith("msg_")
            self._ids.add(entry.id)
        for is_result, kind, call_id in entry.facets.links:
            if not is_result:
                self._open.setdefault((kind, call_id), []).append(entry)
                continue
            candidates = self._open.get((kind, call_id))
            if candidates:
                if entry.pull is None or candidates[0].label < entry.pull.label:
                    entry.pull = candidates[0]
                if len(candidates) == 1:
                    candidates.pop()
        if not entry.excluded:
            self.included += 1
            self.tokens += entry.tokens or 0
        else:
            self.hidden_tokens += entry.tokens or 0
        if entry.tokens is None:
            self._uncounted.append(entry)
        if entry.inserted and not entry.excluded:
            self._standing[entry.key] = entry

    def annotate(self, at: int | None = None) -> None:
        """Group what is not grouped yet, or the list from position ``at`` on, as the framework does incrementally."""
        if at is None:
            if self._annotated == len(self.entries):
                return
            at = self._annotated
        self._regroup(self._pulled(self._run_start(at)))
        self._annotated = len(self.entries)

    def _run_start(self, at: int) -> int:
        """Return where the contiguous run of the group before position ``at`` begins."""
        if at <= 0:
            return 0
        at -= 1
        group_id = self.entries[at].group_id
        if group_id is None:
            return at
        while at and self.entries[at - 1].group_id == group_id:
            at -= 1
        return at

    def _pulled(self, start: int) -> int:
        """Return ``start``, moved back to the earliest call that a result from there on might answer."""
        label = self.entries[start].label
        earliest = label
        for entry in self.entries[start:]:
            if entry.pull is not None and entry.pull.label < earliest:
                earliest = entry.pull.label
        if earliest == label:
            return start
        start = bisect_left(self.entries, earliest, key=by_label)
        group_id = self.entries[start].group_id
        while group_id is not None and start and self.entries[start - 1].group_id == group_id:
            start -= 1
        return start

    def _regroup(self, start: int) -> None:
        entries = self.entries[start:]
        self._disturbed = self._disturbed or any(entry.excluded or entry.inserted for entry in entries)
        known = [entry for entry in entries if entry.group_id is not None]
        groups = len({entry.group_id for entry in known})
        self._name(entries, start)
        found = spans([entry.facets for entry in entries])
        self._leave_groups(entries)
        linked: dict[str, list[list[Entry]]] = {}
        for span in found:
            group_id = f"group_{entries[found[span.root].first].id}"
            members = entries[span.first : span.last + 1]
            linked.setdefault(group_id, []).append(members)
            for entry in members:
                if entry.group_id != group_id or entry.kind != span.kind:
                    if entry.group_id is not None:
                        self._journal.append((entry, "group", (entry.group_id, entry.kind)))
                    entry.group_id, entry.kind = group_id, span.kind
                self._join_group(entry)
        for runs in linked.values():
            members = [entry for run in runs for entry in run]
            if len(runs) > 1 and not all(entry.excluded for entry in members):
                self._include(members)
        self._disturbed = self._disturbed or len({entry.group_id for entry in known}) < groups
        if self._unlisted:
            self._list_live()
        label = entries[0].label
        self._find_tangles(entries, linked)
        if label <= self._anchor or not self._is_batch(start, found[0].kind):
            self._anchor = label

    def _find_tangles(self, entries: list[Entry], linked: dict[str, list[list[Entry]]]) -> None:
        """Remember the last message whose group depends on more than its neighbours: inserting before it regroups."""
        for entry in entries:
            if entry.pull is not None and entry.pull.group is not entry.group:
                self._tangled = max(self._tangled, entry.label)
        for runs in linked.values():
            group = runs[0][0].group
            if len(runs) > 1 or (group is not None and group.members[0] is not runs[0][0]):
                self._tangled = max(self._tangled, runs[-1][-1].label)

    def _is_batch(self, start: int, first_kind: Kind) -> bool:
        """Whether grouping from ``start`` gave what grouping from the anchor would have given."""
        label = self.entries[start].label
        if first_kind == "tool_call" and self.entries[start].facets.role == "assistant":
            before = self.entries[start - 1].facets
            if before.is_only_reasoning and self.entries[start - 1].kind != "tool_call":
                return False
        return all(entry.pull is None or entry.pull.label >= label for entry in self.entries[start:])

    def _name(self, entries: list[Entry], start: int) -> None:
        """Give ids to messages without one: ``msg_`` and the position, or the next number that is free."""
        for offset, entry in enumerate(entries):
            if entry.id:
                continue
            number = start + offset
            if f"msg_{number}" in self._ids:
                number = start + len(entries)
                while f"msg_{number}" in self._ids:
                    number += 1
            entry.id = f"msg_{number}"
            self._ids.add(entry.id)

    def _leave_groups(self, entries: list[Entry]) -> None:
        label = entries[0].label
        for entry in entries:
            group = entry.group
            if group is None:
                continue
            while group.members and group.members[-1].label >= label:
                member = group.members.pop()
                member.group = None
                if not member.excluded:
                    group.included -= 1
                    self.talk -= group.kind != "system"
            if not group.members and self.groups.get(group.id) is group:
                del self.groups[group.id]
        for live in (self._live, self._live_tools):
            while live and not live[-1].members:
                live.pop()
        if self._first_user is not None and not self._first_user.members:
            self._first_user = None

    def _join_group(self, entry: Entry) -> None:
        group_id = entry.group_id or ""
        group = self.groups.get(group_id)
        if group is None:
            group = self.groups[group_id] = Group(group_id, entry.kind)
            self._list(group)
            if group.kind == "user" and self._first_user is None:
                self._first_user = group
        entry.group = group
        group.members.append(entry)
        if not entry.excluded:
            group.included += 1
            self.talk += group.kind != "system"
            self._unlisted = self._unlisted or not group.listed

    def _list(self, group: Group) -> None:
        group.listed = True
        self._live.append(group)
        if group.kind == "tool_call":
            self._live_tools.append(group)

    def _list_live(self) -> None:
        seen: dict[str, Group] = {}
        for entry in self.entries:
            if entry.group is not None:
                seen.setdefault(entry.group.id, entry.group)
        self._live, self._live_tools = [], []
        for group in seen.values():
            self._list(group)
        self._first_user = next((group for group in seen.values() if group.kind == "user"), None)
        self._dead, self._dead_tools, self._unlisted = 0, 0, False
        self._purge(0)

    def oldest(self, *, tools: bool = False) -> Iterator[Group]:
        """Yield the included groups, oldest first; or those of tool calls."""
        self._purge()
        live = self._live_tools if tools else self._live
        return (group for group in live if group.included)

    def newest(self, *, tools: bool = False) -> Iterator[Group]:
        """Yield the included groups, newest first; or those of tool calls."""
        if tools and self._dead_tools > len(self._live_tools) // 2:
            self._purge_tools()
        live = self._live_tools if tools else self._live
        return (group for group in reversed(live) if group.included)

    @property
    def first_user(self) -> Group | None:
        """The first user group of the list, excluded or not."""
        return self._first_user

    @property
    def minimum(self) -> Group | None:
        """The group that keeps a list from becoming empty: the last included one that is not system, else the last."""
        last = None
        for group in self.newest():
            if group.kind != "system":
                return group
            last = last or group
        return last

    def _purge(self, tolerated: int | None = None) -> None:
        """Drop groups without included messages from the lists, once they are more than half of them."""
        if self._dead <= (len(self._live) // 2 if tolerated is None else -1):
            return
        for group in self._live:
            group.listed = group.included > 0
        self._live = [group for group in self._live if group.listed]
        self._live_tools = [group for group in self._live_tools if group.listed]
        self._dead = self._dead_tools = 0

    def _purge_tools(self) -> None:
        """Drop them from the list of tool calls alone: others may stay so many that no purge of all comes."""
        for group in self._live_tools:
            group.listed = group.included > 0
        self._live_tools = [group for group in self._live_tools if group.listed]
        self._dead_tools = 0

    def count(self, tokenizer: Tokenizer) -> None:
        """Count from the first uncounted message on; the framework counts those after it again, by whatever rule."""
        if not self._uncounted:
            return
        again = self._uncounted
        if self._rule is not None and (self._mixed_rules or tokenizer is not self._rule):
            first = min(entry.label for entry in self._uncounted)
            again = self.entries[bisect_left(self.entries, first, key=by_label) :]
            self._mixed_rules = True
        self._rule = tokenizer
        for entry in again:
            if entry.tokens is not None:
                self._journal.append((entry, "tokens", entry.tokens))
            tokens = count(entry.message, entry.id, tokenizer)
            if entry.excluded:
                self.hidden_tokens += tokens - (entry.tokens or 0)
            else:
                self.tokens += tokens - (entry.tokens or 0)
            entry.tokens = tokens
        self._uncounted = []

    def exclude(self, group: Group) -> bool:
        """Hide a whole group from the model; return whether anything changed."""
        hidden = self._hide(group)
        if hidden:
            self._edit("dropped", hidden)
        return bool(hidden)

    def shown(self, context: Context) -> Context:
        """Return what is included now, given the context this version started from."""
        return self._placed_anew(context) if self._crowded else context.apply(self._told())

    def adopt(self, edits: Iterable[Edit], after: Context) -> None:
        """Take over what a strategy that knows no ledgers made of the list."""
        self._told().extend(edits)
        self.follow(after, self.stop)

    def summarise(self, hidden: list[Entry], first: Entry, text: str, message_id: str, kind: EditKind) -> bool:
        """Hide entries and put an assistant message before ``first``; return whether any of them was included."""
        was_visible = not first.excluded
        home = first.key
        keys = [key for entry in hidden if not entry.excluded for key in self._hide_entry(entry)]
        summary = self._summary(text, message_id, first, home if was_visible and home in keys else None)
        self._edit(kind, keys, Placed(summary.key, summary.message))
        quiet = message_id not in self._ids
        position = self._insert(summary, first)
        self._note(summary)
        start = self.entries[self._run_start(position)].label
        if quiet and self._anchor <= start and self._tangled < start:
            self._settle(summary)
        else:
            self.annotate(position)
        return bool(keys)

    def _settle(self, summary: Entry) -> None:
        """Make the group of an inserted summary where grouping all that follows again would change nothing else."""
        summary.group_id = f"group_{summary.id}"
        group = summary.group = self.groups[summary.group_id] = Group(summary.group_id, summary.kind)
        group.members.append(summary)
        group.included, group.listed = 1, True
        self.talk += 1
        self._live.insert(bisect_left(self._live, summary.label, key=by_first), group)
        self._annotated = len(self.entries)

    def _hide(self, group: Group) -> list[Key]:
        if not group.included or group.pinned:
            return []
        return [key for entry in group.members if not entry.excluded for key in self._hide_entry(entry)]

    def _hide_entry(self, entry: Entry) -> tuple[Key]:
        self._flip(entry)
        if self._standing.get(entry.key) is entry:
            del self._standing[entry.key]
        group = entry.group
        if group is not None and not group.included:
            self._dead += 1
            self._dead_tools += group.kind == "tool_call"
        return (entry.key,)

    def _include(self, members: list[Entry]) -> None:
        """Show excluded members of a linked group again."""
        keys = []
        for entry in members:
            if entry.excluded:
                self._flip(entry)
                keys.append(entry.key)
                # A summary may stand where the message would stand again: then every inserted message moves.
                self._crowded = self._crowded or entry.inserted or entry.key in self._standing
                self._unlisted = self._unlisted or entry.group is None or not entry.group.listed
                if entry.inserted:
                    self._standing[entry.key] = entry
        if keys:
            self._edit("restored", keys)

    def _flip(self, entry: Entry) -> None:
        self._journal.append((entry, "flip", None))
        entry.excluded = not entry.excluded
        sign = -1 if entry.excluded else 1
        self.included += sign
        self.tokens += sign * (entry.tokens or 0)
        self.hidden_tokens -= sign * (entry.tokens or 0)
        if entry.group is not None:
            entry.group.included += sign
            if entry.group.kind != "system":
                self.talk += sign

    def _edit(self, kind: EditKind, keys: list[Key], new: Placed | None = None) -> None:
        """Note an edit; what is merely dropped in a row is one edit."""
        if kind == "dropped":
            self._dropped += keys
            return
        self._told()
        self._edits.append(Edit(kind, tuple(keys), new))

    def _told(self) -> list[Edit]:
        if self._dropped:
            self._edits.append(Edit("dropped", tuple(self._dropped)))
            self._dropped = []
        return self._edits

    def _summary(self, text: str, message_id: str, first: Entry, home: Key | None) -> Entry:
        """Return the entry of a summary, which takes the key of the first message it hides or the next one free."""
        message = Message("assistant", (Text(text),), source="summary")
        key = home
        if key is None or key in self._standing:
            key = self._free_before(first)
        entry = Entry(message, first.label, key, message_id)
        self._standing[key] = entry
        return entry

    def _free_before(self, first: Entry) -> Key:
        position = self._position(first)
        previous = next((e for e in reversed(self.entries[:position]) if not e.excluded), None)
        following = next((e for e in self.entries[position:] if not e.excluded), None)
        key = (-1, 1) if previous is None else (previous.key[0], previous.key[1] + 1)
        if following is not None and key >= following.key:
            self._crowded = True
        return key

    def _position(self, entry: Entry) -> int:
        return bisect_left(self.entries, entry.label, key=by_label)

    def _insert(self, entry: Entry, before: Entry) -> int:
        position = self._position(before)
        entry.label = between(self.entries[position - 1] if position else None, before)
        self.entries.insert(position, entry)
        self._journal.append((entry, "insert", None))
        return position

    @property
    def pristine(self) -> bool:
        """Whether it is what grouping its messages from scratch gives, with nothing excluded or inserted."""
        return self._grouped_as_a_whole and self.included == len(self.entries) and not self._standing

    @property
    def undisturbed(self) -> bool:
        """Whether its groups are what grouping from scratch gives, and none has changed since that mattered."""
        return self._grouped_as_a_whole and not self._disturbed

    @property
    def _grouped_as_a_whole(self) -> bool:
        return not self._odd_ids and (not self.entries or self._anchor <= self.entries[0].label)

    def commit(self, context: Context) -> tuple[Edit, ...]:
        """Close a version; return the edits that turn ``context``, from which it started, into what is included now."""
        edits = tuple(self._told())
        if self._crowded:
            edits = context.difference(self._placed_anew(context))
        self._edits, self._dropped, self.reasons, self.outcome, self._crowded = [], [], [], "ok", False
        self.version += 1
        self._mark()
        return edits

    def _placed_anew(self, context: Context) -> Context:
        placed = []
        self._standing = {}
        ranks: dict[int, int] = {}
        for entry in self.entries:
            if entry.excluded:
                continue
            index = entry.label[0]
            key = (index, 0)
            if entry.inserted:
                ranks[index] = ranks.get(index, 0) + 1
                key = (index - 1, ranks[index])
                self._standing[key] = entry
            if entry.key != key:
                self._journal.append((entry, "key", entry.key))
                entry.key = key
            placed.append(Placed(key, entry.message))
        placed.extend(context.entries((self.stop, 0)))
        return Context.of(context.log, context.stop, placed)

    def _mark(self) -> None:
        mark = _Mark(
            len(self._journal),
            self.stop,
            self._annotated,
            self._anchor,
            self.failures,
            self.turn,
            self._rule,
            self._mixed_rules,
            self._disturbed,
        )
        self._marks.append(mark)

    def rollback(self, version: int) -> None:
        """Take the ledger back to what it was at ``version``; nothing happens when it is there already."""
        if (
            version == self.version
            and len(self._journal) == self._marks[-1].journal
            and self.stop == self._marks[-1].stop
        ):
            return
        del self._marks[version + 1 :]
        mark = self._marks[version]
        gone: set[int] = set()
        while len(self._journal) > mark.journal:
            entry, what, old = self._journal.pop()
            if what == "flip":
                entry.excluded = not entry.excluded
            elif what == "insert":
                gone.add(id(entry))
            elif what == "group":
                entry.group_id, entry.kind = old  # type: ignore[misc]
            elif what == "message":
                entry.message, entry.facets, entry.tokens = old, facets(old), None  # type: ignore[assignment, arg-type]
            else:
                setattr(entry, what, old)
        self.entries = [e for e in self.entries if e.label < (mark.stop, 0) and id(e) not in gone]
        self.stop, self._annotated, self._anchor = mark.stop, mark.annotated, mark.anchor
        self.failures, self.turn, self._rule, self._mixed_rules = mark.failures, mark.turn, mark.rule, mark.mixed_rules
        self._disturbed = mark.disturbed
        self.version = version
        self._edits, self._dropped, self.reasons, self.outcome, self._crowded = [], [], [], "ok", False
        self._reindex()

    def _reindex(self) -> None:
        """Derive sums, groups and open calls from the entries and their notes."""
        self.included = self.talk = self.tokens = self.hidden_tokens = 0
        self.groups, self._live, self._live_tools, self._first_user = {}, [], [], None
        self._dead = self._dead_tools = 0
        self._ids, self._open, self._uncounted, self._standing = set(), {}, [], {}
        for entry in self.entries:
            entry.group = entry.pull = None
            self._note(entry)
        for entry in self.entries:
            if entry.group_id is not None:
                self._join_group(entry)
        self._unlisted = False

    def to_rows(self) -> Rows:
        """Return the list and its notes as plain tuples."""
        anchor = bisect_left(self.entries, self._anchor, key=by_label)
        return ((self.stop, self.failures, self.turn, anchor), *map(row_of, self.entries))

    @classmethod
    def of_rows(cls, rows: Rows, log: Log) -> Ledger:
        """Return the ledger that :meth:`to_rows` described."""
        ledger = cls()
        (stop, ledger.failures, ledger.turn, anchor), *entries = rows
        ledger.entries = list(entries_of(entries, log))
        ledger.stop, ledger._annotated, ledger._tangled = stop, len(ledger.entries), (stop, 0)
        ledger._disturbed = True
        ledger._anchor = ledger.entries[anchor].label if anchor < len(ledger.entries) else (stop, 0)
        ledger._reindex()
        ledger._mark()
        return ledger

"""Whether a provider would take a list of messages, and whether a compaction kept its promises: rules V1 to V17.

Each rule is a function over the same prepared view of the messages; all are linear in the number of messages.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from compaction_lab.conversation.messages import Message, Reasoning, Text
from compaction_lab.conversation.pairing import Pairing
from compaction_lab.conversation.profiles import Profile
from compaction_lab.conversation.profiles import profile as profile_named
from compaction_lab.conversation.wire import SHAPE

Apply = Callable[[Sequence[Message]], Sequence[Message]]
Remark = tuple[int | None, str]


@dataclass(frozen=True, slots=True)
class Finding:
    """A rule that a list of messages breaks.

    Parameters
    ----------
    rule
        ``V1`` to ``V17``.
    message_index
        The message it is about; ``None`` when it is about the list.
    text
        What was found.
    is_error
        Whether the provider of the profile would refuse the messages for it, or the lab broke its own promise.
    """

    rule: str
    message_index: int | None
    text: str
    is_error: bool = True


@dataclass(frozen=True, slots=True)
class Rule:
    """One validity rule: its meaning in a line, what it needs, and the function that finds what breaks it."""

    name: str
    meaning: str
    find: Callable[[View], Iterator[Remark]]
    needs: str = ""


@dataclass(frozen=True, slots=True)
class Batch:
    """Tool calls made by one model call, and the indices of the results that follow directly."""

    message: int
    ids: tuple[str, ...]
    results: list[int] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class View:
    """What the rules look at: the messages, their pairs and batches, and, where given, the uncompacted messages."""

    messages: Sequence[Message]
    pairing: Pairing
    batches: list[Batch]
    batch_of: dict[int, int]
    before: View | None
    profile: Profile
    apply: Apply | None
    size: Callable[[Message], int]


def check(
    messages: Sequence[Message],
    *,
    before: Sequence[Message] | None = None,
    profile: str = "openai",
    apply: Apply | None = None,
    size: Callable[[Message], int] | None = None,
    rules: Sequence[str] | None = None,
) -> list[Finding]:
    """Return every rule that a list of messages breaks, in the order of the rules.

    Parameters
    ----------
    messages
        As they would be sent.
    before
        The same messages uncompacted; without them the rules that compare are left out.
    profile
        Whose demands decide which findings are errors: ``openai``, ``anthropic``, ``gemini`` or ``lenient``.
    apply
        The strategy, as a function of messages, for the idempotence rule.
    size
        Size of a message for the rule that a compaction must shrink; characters by default.
    rules
        Names of the rules to check; all by default.

    Raises
    ------
    ConfigurationError
        If the profile is unknown.

    Examples
    --------
    >>> from compaction_lab.conversation.messages import tool, user
    >>> [(finding.rule, finding.message_index) for finding in check([user("hi"), tool("a", "found")])]
    [('V1', 1)]
    """
    chosen = profile_named(profile)
    measure = size or characters
    old = None if before is None else _view(before, None, chosen, None, measure)
    view = _view(messages, old, chosen, apply, measure)
    return [
        Finding(rule.name, index, text, rule.name in chosen.errors)
        for rule in RULES.values()
        if (rules is None or rule.name in rules)
        and (rule.needs != "before" or old is not None)
        and (rule.needs != "apply" or apply is not None)
        for index, text in rule.find(view)
    ]


def characters(message: Message) -> int:
    """Return the characters of a message that a model reads: text, reasoning, names and arguments of calls."""
    return sum(len(part.text) for part in message.parts if isinstance(part, (Text, Reasoning))) + sum(
        len(call.name) + len(call.arguments) for call in message.calls
    )


def _view(
    messages: Sequence[Message],
    before: View | None,
    profile: Profile,
    apply: Apply | None,
    size: Callable[[Message], int],
) -> View:
    batches: list[Batch] = []
    batch_of: dict[int, int] = {}
    current: Batch | None = None
    response_id = ""
    for index, message in enumerate(messages):
        if message.role == "tool":
            if current is not None:
                current.results.append(index)
            continue
        continues = message.role == "assistant" and message.response_id and message.response_id == response_id
        response_id = message.response_id
        if not continues:
            current = None
        if message.calls:
            ids = tuple(call.id for call in message.calls)
            if current is None:
                current = Batch(index, ids)
                batches.append(current)
            else:
                # One model call recorded as several messages is one batch.
                current = batches[-1] = Batch(current.message, current.ids + ids, current.results)
            batch_of[index] = len(batches) - 1
    return View(messages, Pairing(messages), batches, batch_of, before, profile, apply, size)


def _result_has_call(view: View) -> Iterator[Remark]:
    beside = {index: number for number, batch in enumerate(view.batches) for index in batch.results}
    for index, message in enumerate(view.messages):
        if message.role != "tool":
            continue
        place = view.pairing.answers[index]
        if place is None:
            yield index, f"the result answers {message.call_id!r}, which no earlier message calls"
        elif beside.get(index) != view.batch_of[place.message]:
            yield index, f"the result answers a call of message {place.message}, which does not directly precede it"


def _call_has_result(view: View) -> Iterator[Remark]:
    pending = len(view.batches) - 1 if view.batches and _is_pending(view, view.batches[-1]) else -1
    for place in view.pairing.unanswered:
        if view.batch_of[place.message] != pending:
            call = view.messages[place.message].calls[place.position]
            yield place.message, f"the call {call.id!r} ({call.name}) has no result before the conversation goes on"


def _is_pending(view: View, batch: Batch) -> bool:
    return all(message.role == "tool" or message.calls for message in view.messages[batch.message :])


def _single_result(view: View) -> Iterator[Remark]:
    for index in view.pairing.duplicates:
        yield index, f"the call {view.messages[index].call_id!r} already has a result"


def _batch_is_whole(view: View) -> Iterator[Remark]:
    open_calls = Counter(view.batch_of[place.message] for place in view.pairing.unanswered)
    for number, batch in enumerate(view.batches):
        missing = open_calls[number]
        if 0 < missing < len(batch.ids) and not (number == len(view.batches) - 1 and _is_pending(view, batch)):
            yield batch.message, f"{missing} of {len(batch.ids)} parallel calls lost their result"
    if view.before is None:
        return
    orders: dict[tuple[str, ...], set[tuple[str, ...]]] = defaultdict(set)
    for batch in view.before.batches:
        orders[batch.ids].add(_result_order(view.before, batch))
    known = {call_id for ids in orders for call_id in ids}
    for batch in view.batches:
        if batch.ids not in orders:
            if known.intersection(batch.ids):
                yield batch.message, f"the calls {list(batch.ids)} were not made together, or not in this order"
        elif not any(_is_subsequence(_result_order(view, batch), order) for order in orders[batch.ids]):
            yield batch.message, "the results stand in another order than before"


def _result_order(view: View, batch: Batch) -> tuple[str, ...]:
    return tuple(view.messages[index].call_id for index in batch.results)


def _is_subsequence(short: Sequence[str], whole: Sequence[str]) -> bool:
    rest = iter(whole)
    return all(item in rest for item in short)


def _reasoning_stays(view: View) -> Iterator[Remark]:
    last_user = max((index for index, message in enumerate(view.messages) if message.role == "user"), default=-1)
    signed: dict[tuple[str, ...], set[tuple[Reasoning, ...]]] = defaultdict(set)
    for message in view.before.messages if view.before else ():
        if message.calls:
            signed[tuple(call.id for call in message.calls)].add(_signed(message))
    for index, message in enumerate(view.messages):
        if message.role != "assistant":
            continue
        reasoning = _signed(message)
        if reasoning and not message.calls and not any(isinstance(part, Text) for part in message.parts):
            following = view.messages[index + 1] if index + 1 < len(view.messages) else None
            if not (following and message.response_id and following.response_id == message.response_id):
                yield index, "signed reasoning stands without the text or call it belongs to"
        was = signed.get(tuple(call.id for call in message.calls)) if message.calls else None
        if was and reasoning not in was and (index > last_user or any(item.id for one in was for item in one)):
            yield index, "the calls lost the signed reasoning that came with them"


def _signed(message: Message) -> tuple[Reasoning, ...]:
    return tuple(part for part in message.parts if isinstance(part, Reasoning) and (part.opaque or part.id))


def _system_leads(view: View) -> Iterator[Remark]:
    for index, message in enumerate(view.messages):
        if index and message.role in {"system", "developer"}:
            yield index, f"a {message.role} message stands after the first message"


def _user_opens(view: View) -> Iterator[Remark]:
    for index, message in enumerate(view.messages):
        if message.role not in {"system", "developer"}:
            if message.role != "user":
                yield index, f"the conversation opens with a message of the {message.role}"
            return


def _has_content(view: View) -> Iterator[Remark]:
    for index, message in enumerate(view.messages):
        if message.calls:
            continue
        blank = all(isinstance(part, Text) and not part.text.strip() for part in message.parts)
        # A tool may truly answer nothing; its text is then empty, but it is there.
        if blank and not (message.role == "tool" and message.parts):
            yield index, f"the {message.role} message has no content"


def _roles_alternate(view: View) -> Iterator[Remark]:
    spoken = [(index, message) for index, message in enumerate(view.messages) if message.role in {"user", "assistant"}]
    for (left, earlier), (right, later) in pairwise(spoken):
        same_call = bool(later.response_id) and later.response_id == earlier.response_id
        if earlier.role == later.role and not same_call and right == left + 1:
            yield right, f"two messages of the {later.role} in a row"


def _has_user(view: View) -> Iterator[Remark]:
    if not any(message.role == "user" for message in view.messages):
        yield None, "there is no user message"


def _ends_open(view: View) -> Iterator[Remark]:
    if view.messages and view.messages[-1].role not in {"user", "tool"}:
        yield (
            len(view.messages) - 1,
            f"the last message is the {view.messages[-1].role}'s, so there is nothing to answer",
        )


def _task_is_visible(view: View) -> Iterator[Remark]:
    before = view.before.messages if view.before else ()
    task = next((message.text for message in before if message.role == "user"), "")
    if task and not any(task in message.text for message in view.messages):
        yield None, "the first user message, which states the task, is no longer visible"


def _known_keys(view: View) -> Iterator[Remark]:
    allowed = view.profile.wire_keys
    if allowed is None:
        return
    for index, message in enumerate(view.messages):
        unknown = [key for key in message.extra if key != SHAPE and key not in allowed]
        if unknown:
            yield index, f"{view.profile.name} does not know {', '.join(map(repr, sorted(unknown)))}"


def _is_shorter(view: View) -> Iterator[Remark]:
    if view.before is None or _wires(view.messages) == _wires(view.before.messages):
        return
    now, was = sum(map(view.size, view.messages)), sum(map(view.size, view.before.messages))
    if now >= was:
        yield None, f"the messages changed but did not shrink: {was} before, {now} after"


def _is_idempotent(view: View) -> Iterator[Remark]:
    if view.apply is None:
        return
    again = view.apply(view.messages)
    place = _first_change(view.messages, again)
    if place is not None:
        yield place, "applied again without new messages, the strategy changes them again"


def _pins_stay(view: View) -> Iterator[Remark]:
    if view.before is None:
        return
    places: dict[tuple[object, ...], deque[int]] = defaultdict(deque)
    for index, message in enumerate(view.messages):
        places[message.wire].append(index)
    reached = -1
    for index, message in enumerate(view.before.messages):
        if not message.pinned:
            continue
        ahead = places[message.wire]
        while ahead and ahead[0] <= reached:
            ahead.popleft()
        if ahead:
            reached = ahead.popleft()
        else:
            yield None, f"the pinned message {index} of the uncompacted messages is missing, changed or out of order"


def _prefix_grows(view: View) -> Iterator[Remark]:
    if view.before is None:
        return
    place = _first_change(view.before.messages, view.messages)
    if place is not None and place < len(view.before.messages):
        yield (
            place,
            f"the first change is at message {place} of {len(view.before.messages)}: what follows is not cached",
        )


def _first_change(earlier: Sequence[Message], later: Sequence[Message]) -> int | None:
    for index, (left, right) in enumerate(zip(earlier, later, strict=False)):
        if left is not right and left.wire != right.wire:
            return index
    return None if len(earlier) == len(later) else min(len(earlier), len(later))


def _wires(messages: Sequence[Message]) -> list[tuple[object, ...]]:
    return [message.wire for message in messages]


RULES: Mapping[str, Rule] = {
    rule.name: rule
    for rule in (
        Rule("V1", "every tool result has its call in the directly preceding assistant batch", _result_has_call),
        Rule("V2", "every call has a result before the next other message; the last batch may wait", _call_has_result),
        Rule("V3", "no call has two results", _single_result),
        Rule("V4", "parallel calls stay together and in order", _batch_is_whole),
        Rule("V5", "signed reasoning stays with the calls it came with", _reasoning_stays),
        Rule("V6", "one system message, first", _system_leads),
        Rule("V7", "the first message after the system message is the user's", _user_opens),
        Rule("V8", "no message is empty", _has_content),
        Rule("V9", "user and assistant alternate", _roles_alternate),
        Rule("V10", "there is a user message", _has_user),
        Rule("V11", "the last message is the user's or a tool's", _ends_open),
        Rule("V12", "the task, or a summary that contains it, is visible", _task_is_visible, "before"),
        Rule("V13", "no key that the provider does not know", _known_keys),
        Rule("V14", "a compaction makes the messages shorter", _is_shorter, "before"),
        Rule("V15", "applying the strategy again changes nothing", _is_idempotent, "apply"),
        Rule("V16", "pinned messages are unchanged", _pins_stay, "before"),
        Rule("V17", "where the unchanged prefix ends (reported, never an error)", _prefix_grows, "before"),
    )
}
"""Every rule by name, in order. V12 and V17 are reported and no profile makes them errors."""

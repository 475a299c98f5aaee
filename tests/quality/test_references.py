"""A reference is what the agent used and had from an earlier message; it is missed when nothing sent says it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from compaction_lab.conversation.context import Context, Edit, Placed
from compaction_lab.conversation.log import Log
from compaction_lab.conversation.messages import Message, Text, ToolCall, ToolDefinition, assistant, system, tool, user
from compaction_lab.conversation.tokens import TokenCounter, tokenizer
from compaction_lab.quality.evidence import searchable
from compaction_lab.quality.mentions import mentions
from compaction_lab.quality.references import Reference, ReferenceRules, ReferenceWatch, references

COUNTER = TokenCounter(tokenizer("characters"))
FILLER = (assistant("I see."), user("And then?"), assistant("Wait a moment."), user("All right."))


def call(number: int, **arguments: object) -> Message:
    return assistant("", ToolCall(f"c{number}", "change_order", json.dumps(arguments)))


def session(*ending: Message, source: Message | None = None) -> Log:
    """A customer's order is looked up, some small talk follows, and the ending uses what was read."""
    read = source or tool("c1", '{"order": "K-77120", "paid_with": "gift_card_88", "total": 1250, "city": "Turku"}')
    return Log([system("Help with orders."), user("My order, please."), call(1, id=1), read, *FILLER, *ending])


def found(log: Log, tools: Sequence[ToolDefinition] = (), **rules: int) -> list[Reference]:
    return [one for call in references(log, tools, COUNTER, ReferenceRules(**rules)).values() for one in call]


def values(log: Log, tools: Sequence[ToolDefinition] = ()) -> list[str]:
    return [searchable(log.messages[one.use.message])[one.use.start : one.use.end] for one in found(log, tools)]


def test_values_used_in_arguments_and_answers_are_found_with_both_places() -> None:
    log = session(
        call(2, order="K-77120", pay="gift_card_88", city="Turku"), tool("c2", "ok"), assistant("$1,250 moved.")
    )
    assert values(log) == ["K-77120", "gift_card_88", "Turku", "1,250"]
    for one in found(log):
        said = searchable(log.messages[one.source.message])[one.source.start : one.source.end]
        assert said in one.spellings
        used = searchable(log.messages[one.use.message])[one.use.start : one.use.end]
        assert one.sha256 == hashlib.sha256(used.encode()).hexdigest()
        assert one.source.message == 3


def test_what_is_recent_fixed_common_or_the_agents_own_is_no_reference() -> None:
    assert values(session(user("Order K-99001, I mean."), call(2, order="K-99001"))) == []
    assert values(session(call(2, order="K-55555"), tool("c2", "ok"), *FILLER, call(3, order="K-55555"))) == []
    offered = [ToolDefinition("change_order", "Change an order such as K-77120.")]
    assert values(session(call(2, order="K-77120")), offered) == []
    often = [message for n in range(8) for message in (call(n + 2, n=n), tool(f"c{n + 2}", "K-77120 again"))]
    assert values(session(*often, *FILLER, call(20, order="K-77120"))) == []


def test_a_whole_argument_wins_over_its_parts_and_parts_count_when_nothing_said_the_whole() -> None:
    note = tool("c1", "Ship to 12 Harbour Lane, dock_b7")
    assert values(session(call(2, to="12 Harbour Lane"), source=note)) == ["12 Harbour Lane"]
    assert values(session(call(2, to="the crate at dock_b7, soon"), source=note)) == ["dock_b7"]


def test_escaped_text_is_found_where_it_stands_in_the_raw_arguments() -> None:
    log = session(call(2, note='see "Turku"\nand K-77120 \u00e9'))
    use = next(one.use for one in found(log) if one.kind == "identifier")
    assert searchable(log.messages[use.message])[use.start : use.end] == "K-77120"


def test_a_call_counts_a_value_once_and_no_more_values_than_allowed() -> None:
    log = session(call(2, a="K-77120", b="K-77120", c="gift_card_88", d="Turku"))
    assert len(found(log)) == 3
    assert len(found(log, most_per_call=2)) == 2


def test_a_value_is_in_sight_while_any_message_or_stand_in_says_it() -> None:
    log = session(call(2, order="K-77120"))
    watch = ReferenceWatch(references(log, (), COUNTER), log, COUNTER)
    stop = len(log) - 1
    whole = Context(log, stop)

    def visible(context: Context) -> object:
        (row,) = watch.rows(stop, 2, 4, context)
        return row["evidence_visible"]

    def stand_in(text: str) -> Context:
        placed = Placed((3, 0), Message("tool", (Text(text),), call_id="c1", source="placeholder"))
        return whole.apply([Edit("masked", ((3, 0),), placed)])

    assert visible(whole) == 1.0
    assert visible(stand_in("[tool result removed]")) == 0.0
    assert visible(stand_in("K-77120, the rest is gone")) == 1.0
    assert visible(stand_in("K-771201")) == 0.0
    gone = whole.apply([Edit("dropped", ((2, 0), (3, 0)))])
    assert visible(gone) == 0.0
    summary = Placed((1, 1), Message("user", (Text("Order K-77120 was read."),), source="summary"))
    assert visible(gone.apply([Edit("inserted", (), summary)])) == 1.0


def test_a_miss_names_both_places_and_its_age_and_holds_no_text() -> None:
    log = session(call(2, order="K-77120"))
    watch = ReferenceWatch(references(log, (), COUNTER), log, COUNTER)
    stop = len(log) - 1
    (row,) = watch.rows(stop, 2, 4, Context(log, stop).apply([Edit("dropped", ((2, 0), (3, 0)))]))
    assert (row["age_turns"], row["age_tokens"]) == (2, sum(map(COUNTER.message, FILLER)))
    assert "K-77120" not in json.dumps(row)
    about = row["reference"]
    assert isinstance(about, dict)
    assert (about["source"][0], about["use"][0], about["newest"]) == (3, stop, 3)  # type: ignore[index]


@given(st.text(max_size=80), st.dictionaries(st.text(max_size=8), st.text(max_size=40) | st.integers(), max_size=4))
def test_every_mention_stands_where_it_says(text: str, arguments: dict[str, object]) -> None:
    message = assistant(text, ToolCall("c", "f", json.dumps(arguments)), ToolCall("d", "f", "not json: K-12 /a/b"))
    whole = searchable(message)
    for one in mentions(message):
        assert 0 <= one.start < one.end <= len(whole)
        if "\\" not in whole[one.start : one.end]:
            assert whole[one.start : one.end] == one.value

from hypothesis import given
from hypothesis import strategies as st

from compaction_lab.conversation.messages import Message, ToolCall, assistant, system, tool, user
from compaction_lab.conversation.transcript import RecordedCompaction
from compaction_lab.importers.folding import Exchange, fold


def said(messages: list[Message]) -> list[str]:
    return [message.text or message.calls[0].id for message in messages]


def test_calls_that_repeat_the_history_are_one_conversation() -> None:
    call = assistant("", ToolCall("k", "look", '{"a": 1, "b": 2}'))
    again = assistant("", ToolCall("k", "look", '{"b":2,"a":1}'))
    (found,) = fold(
        [
            Exchange([system("s"), user("go")], [call]),
            Exchange([system("s"), user("go"), again, tool("k", "12")], [assistant("twelve")]),
        ]
    )
    assert said(found.messages) == ["s", "go", "k", "12", "twelve"]


def test_equal_beginnings_are_not_joined_unless_the_whole_is_repeated() -> None:
    first = Exchange([system("s"), user("go")], [assistant("a")])
    second = Exchange([system("s"), user("go")], [assistant("b")])
    assert [said(each.messages) for each in fold([first, second])] == [["s", "go", "a"], ["s", "go", "b"]]


def test_agents_of_one_trace_stay_apart() -> None:
    found = fold(
        [
            Exchange([system("main"), user("go")], [assistant("a")], conversation="t"),
            Exchange([user("search")], [assistant("found")], conversation="t"),
            Exchange([system("main"), user("go"), assistant("a"), user("on")], [assistant("b")], conversation="t"),
        ]
    )
    assert [said(each.messages) for each in found] == [["main", "go", "a", "on", "b"], ["search", "found"]]


def test_what_the_provider_remembers_is_not_sent_again() -> None:
    call = assistant("", ToolCall("k", "look", "{}"))
    by_id = [
        Exchange([system("s"), user("go")], [call], id="1"),
        Exchange([system("s"), tool("k", "12")], [assistant("twelve")], id="2", continues="1"),
        Exchange([user("and?")], [assistant("no")], id="3", continues="2"),
    ]
    by_call = [Exchange([user("go")], [call]), Exchange([tool("k", "12")], [assistant("twelve")])]
    by_name = [
        Exchange([user("go")], [assistant("a")], conversation="c", stateful=True),
        Exchange([user("on")], [assistant("b")], conversation="c", stateful=True),
    ]
    assert [said(each.messages) for each in fold(by_id)] == [["s", "go", "k", "12", "twelve", "and?", "no"]]
    assert [said(each.messages) for each in fold(by_call)] == [["go", "k", "12", "twelve"]]
    assert [said(each.messages) for each in fold(by_name)] == [["go", "a", "on", "b"]]


def test_a_history_rewritten_within_a_conversation_is_a_recorded_compaction() -> None:
    first = [system("s"), user("go"), assistant("a"), user("more")]
    (found,) = fold(
        [
            Exchange(first, [assistant("b")], conversation="c"),
            Exchange([system("s"), user("so far: a"), assistant("b"), user("on")], [assistant("c")], conversation="c"),
        ]
    )
    assert said(found.messages) == ["s", "go", "a", "more", "b", "so far: a", "on", "c"]
    assert found.compactions == [RecordedCompaction(5, "history_rewritten")]
    assert found.messages[5].source == "summary"


def test_a_call_written_twice_counts_once() -> None:
    twice = Exchange([user("go")], [assistant("a")], id="1")
    assert len(fold([twice, twice])) == 1


@given(st.lists(st.tuples(st.text("ab", min_size=1, max_size=2), st.text("cd", min_size=1, max_size=2)), max_size=12))
def test_any_log_of_whole_histories_folds_to_its_conversation(turns: list[tuple[str, str]]) -> None:
    whole = [message for asked, answered in turns for message in (user(asked), assistant(answered))]
    log = [Exchange(whole[:at], whole[at : at + 1]) for at in range(1, len(whole), 2)]
    assert [each.messages for each in fold(log)] == ([whole] if whole else [])

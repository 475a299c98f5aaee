from compaction_lab.conversation.messages import Message, ToolCall, assistant, tool, user
from compaction_lab.conversation.pairing import CallPlace, Pairing, pair_results


def call(*ids: str) -> Message:
    return assistant("", *(ToolCall(call_id, "look", "{}") for call_id in ids))


def test_a_reused_id_belongs_to_the_nearest_open_call() -> None:
    messages = [user("go"), call("a"), tool("a", "1"), call("a"), tool("a", "2")]
    assert pair_results(messages) == [None, None, 1, None, 3]
    assert Pairing(messages).reused_ids == 1


def test_an_id_reused_while_its_call_is_open_leaves_the_earlier_call_unanswered() -> None:
    pairing = Pairing([user("go"), call("a"), call("a"), tool("a", "2")])
    assert pairing.answers[3] == CallPlace(2, 0)
    assert pairing.unanswered == (CallPlace(1, 0),)


def test_one_id_for_all_calls_of_a_batch_is_answered_in_order() -> None:
    pairing = Pairing([call("same", "same"), tool("same", "first"), tool("same", "second")])
    assert pairing.answers[1:] == [CallPlace(0, 0), CallPlace(0, 1)]
    assert pairing.unanswered == ()


def test_orphans_and_duplicates_are_listed_and_not_refused() -> None:
    pairing = Pairing([tool("a", "early"), call("a"), tool("a", "1"), tool("a", "again")])
    assert (pairing.orphans, pairing.duplicates) == ([0], [3])
    assert pairing.answers[3] == CallPlace(1, 0)

"""What summarising mechanisms, compositions and guards of the lab promise, on random conversations, call by call."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from compaction_lab.conversation.context import Context
from compaction_lab.conversation.log import Log, is_system
from compaction_lab.conversation.messages import Message
from compaction_lab.conversation.validity import check
from compaction_lab.models.faulty import FAULTS, FaultySummarizer
from compaction_lab.strategies.base import Compaction, Pipeline, Situation, Strategy, drive, steps
from compaction_lab.strategies.composition import BudgetComposed, Fallback, FirstThatActs, Ladder, UntilTarget
from compaction_lab.strategies.guards import Guarded
from compaction_lab.strategies.mechanisms.chunked_summary import ChunkedSummary
from compaction_lab.strategies.mechanisms.memory_blocks import MemoryBlocks
from compaction_lab.strategies.mechanisms.rewrite_results import RewriteResults
from compaction_lab.strategies.mechanisms.summarize import Summarize
from compaction_lab.strategies.memory import decode, encode
from compaction_lab.strategies.plain import ObservationMasking, SlidingWindow
from tests.conversations import conversations, messy_conversations, shown
from tests.strategies.harness import CHARACTERS, Scribe, Watched, every_occasion, slot

PROMISED = ("V1", "V2", "V3", "V4", "V5", "V8", "V13", "V16")

summaries = st.builds(
    Summarize,
    keep=st.sampled_from([0, 1, 3, 30]),
    unit=st.sampled_from(["turn", "step", "group", "message", "token"]),
    keep_first=st.sampled_from([0, 2]),
    stays=st.sampled_from([(), ("first_user",), ("first_user", "last_user")]),
    user_tokens=st.sampled_from([None, 0, 10, 1000]),
    role=st.sampled_from(["user", "assistant", "system"]),
    position=st.sampled_from(["behind", "front"]),
    previous=st.sampled_from(["reread", "update", "keep"]),
    asks=st.sampled_from(["transcript", "conversation"]),
    split_turn=st.booleans(),
    verify=st.booleans(),
    acknowledgement=st.sampled_from(["", "Go on."]),
    input_tokens=st.sampled_from([None, 20]),
    fit=st.sampled_from(["drop_oldest", "drop_newest", "halve_biggest", "middle_out"]),
    retries=st.sampled_from([0, 2]),
)
others = st.one_of(
    st.builds(ChunkedSummary, chunk_tokens=st.sampled_from([10, 60]), keep=st.sampled_from([0, 2])),
    st.builds(RewriteResults, limit=st.sampled_from([1, 3]), keep_last=st.sampled_from([0, 1])),
    st.builds(
        MemoryBlocks,
        token_limit=st.sampled_from([40, 200]),
        token_flush_size=st.sampled_from([1, 50]),
        fact_block=st.booleans(),
        archive_block=st.booleans(),
    ),
)
simple = st.one_of(summaries, st.just(ObservationMasking(1)), st.just(SlidingWindow(2, "step")))
several = st.lists(simple, min_size=1, max_size=3).map(tuple)
compositions = st.one_of(
    st.builds(Pipeline, several),
    st.builds(FirstThatActs, several),
    st.builds(UntilTarget, several, st.sampled_from([40, 150])),
    st.builds(Fallback, several),
    st.builds(BudgetComposed, st.sampled_from([40, 150]), several),
    st.builds(Ladder, st.just(60), simple, st.just(90), simple, st.sampled_from([None, 30])),
    st.builds(
        Guarded,
        simple,
        st.sampled_from([None, 0.2]),
        st.sampled_from([None, 10]),
        st.booleans(),
        st.sampled_from([None, 2]),
    ),
)
any_strategy = st.one_of(summaries, others, compositions)
askers = st.one_of(st.builds(Scribe), st.sampled_from(sorted(FAULTS)).map(FaultySummarizer))
histories = st.sampled_from(["view", "stored"])
few = settings(max_examples=40, deadline=None)


@few
@given(conversations(), st.one_of(summaries, compositions), askers, histories)
def test_what_was_valid_stays_valid_whatever_the_summariser_does(
    messages: list[Message], strategy: Strategy, ask: object, history: str
) -> None:
    log = Log(messages)
    for _, stop, context, _ in every_occasion(messages, slot(strategy, "before_call", history), ask=ask):
        found = check(context.messages, before=log.messages[:stop], rules=PROMISED)
        assert not found, (found, shown(log.messages[:stop]), shown(context.messages))


@few
@given(st.one_of(conversations(), messy_conversations()), st.one_of(summaries, compositions), histories)
def test_nothing_protected_is_touched(messages: list[Message], strategy: Strategy, history: str) -> None:
    log = Log(messages)
    for _, stop, context, _ in every_occasion(messages, slot(strategy, "before_call", history), ask=Scribe()):
        running = log.turn_starts[log.turn_at(stop)] if log.turn_at(stop) else -1
        for at, message in enumerate(messages[:stop]):
            if is_system(message) or message.pinned or at == running or at >= log.unread_from(stop):
                assert context.get((at, 0)) is message, shown([message])


@few
@given(st.one_of(conversations(), messy_conversations()), any_strategy)
def test_pinned_messages_survive_and_the_memory_has_a_json_form(messages: list[Message], strategy: Strategy) -> None:
    def witness(_: Situation, done: Compaction) -> None:
        if done.memory is not None and isinstance(done.memory, (tuple, int, str)):
            assert decode(encode(done.memory)) == done.memory

    for _, stop, context, _ in every_occasion(
        messages, slot(Watched(strategy, witness), history="stored"), ask=Scribe()
    ):
        for at, message in enumerate(messages[:stop]):
            assert not message.pinned or context.get((at, 0)) is message


@few
@given(conversations(), any_strategy)
def test_a_strategy_is_pure(messages: list[Message], strategy: Strategy) -> None:
    log = Log(messages)
    situation = Situation(Context(log, len(log)), "before_call", CHARACTERS)
    first = drive(steps(strategy, situation), Scribe())
    assert first == drive(steps(strategy, situation), Scribe())
    assert situation.context.keys == tuple((at, 0) for at in range(len(messages)))


@few
@given(conversations(), summaries)
def test_a_summary_is_shorter_than_what_it_stands_for(messages: list[Message], strategy: Summarize) -> None:
    def witness(situation: Situation, done: Compaction) -> None:
        base = situation.last if done.base == "last" and situation.last is not None else situation.context
        assert base.apply(done.edits).tokens(CHARACTERS) <= base.tokens(CHARACTERS)

    list(every_occasion(messages, slot(Watched(strategy, witness), history="stored"), ask=Scribe()))


@few
@given(conversations(), st.sampled_from([30, 80, 200]), several)
def test_a_budget_is_met_unless_only_what_may_not_be_touched_is_left(
    messages: list[Message], budget: int, strategies: tuple[Strategy, ...]
) -> None:
    strategy = BudgetComposed(budget, strategies)
    for occasion, _, context, _ in every_occasion(messages, slot(strategy, "before_call", "stored"), ask=Scribe()):
        if occasion == "before_call" and context.tokens(CHARACTERS) > budget:
            situation = Situation(context, "before_call", CHARACTERS)
            assert not any(situation.removable(e.key, e.message, context.stop) for e in context.entries())

from __future__ import annotations

import math
from dataclasses import dataclass, field
from itertools import takewhile
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from compaction_lab.accounting.cache import PromptCache
from compaction_lab.accounting.cache_policy import CachePolicy, cache_policy
from compaction_lab.conversation.messages import Message, Text, ToolCall, ToolDefinition, assistant, system, tool, user
from compaction_lab.errors import ConfigurationError

POLICIES = Path(__file__).parents[2] / "conf" / "cache_policy"


class Characters:
    """Every character is a token, every message costs two more, a request three, a tool definition five."""

    request_overhead = 3
    tokenizer: Characters

    def __init__(self) -> None:
        self.tokenizer = self

    def count(self, text: str) -> int:
        return len(text)

    def message(self, message: Message) -> int:
        return 2 + len(message.text) + sum(len(call.name + call.arguments) for call in message.calls)

    def tools(self, definitions: tuple[ToolDefinition, ...]) -> int:
        return 5 * len(definitions)


@dataclass(eq=False)
class Block:
    messages: tuple[Message, ...]

    def tokens(self, counter: Characters) -> int:
        return sum(map(counter.message, self.messages))


def blocks(*messages: Message) -> tuple[Block, ...]:
    return tuple(Block((message,)) for message in messages)


COUNTER = Characters()
OPENAI = CachePolicy("automatic", minimum_tokens=1024, block_tokens=128, lifetime_s=300)
ANTHROPIC = CachePolicy("breakpoints", minimum_tokens=1024, lifetime_s=300, lookback_blocks=20, writes_cost=True)
LONG = system("s" * 2000)


def test_an_appended_call_reads_the_previous_prompt_in_whole_steps() -> None:
    cache = PromptCache(OPENAI, COUNTER)
    first = cache.send(blocks(LONG, user("hello")))
    second = cache.send(blocks(LONG, user("hello"), assistant("x" * 300), user("more")))

    assert (first.input_tokens, first.read, first.fresh, first.written) == (2012, 0, 2012, 0)
    assert second.read == 1920  # 2,009 shared tokens, floored to 128
    assert second.fresh == second.input_tokens - 1920
    assert first.first_changed_token is None
    assert second.first_changed_token is None


def test_a_masked_result_is_where_the_prompt_changes() -> None:
    cache = PromptCache(OPENAI, COUNTER)
    call = assistant("", ToolCall("c1", "get", "{}"))
    cache.send(blocks(LONG, call, tool("c1", "alpha" * 100), user("a")))
    masked = cache.send(blocks(LONG, call, tool("c1", "[removed]"), user("a")))

    assert masked.first_changed_token == 2002 + 7
    assert masked.read == 1920


def test_a_clipped_message_is_compared_character_by_character() -> None:
    policy = CachePolicy("automatic")
    cache = PromptCache(policy, COUNTER)
    cache.send(blocks(user("abcdefgh"), user("tail")))
    clipped = cache.send(blocks(user("abcd[...]"), user("tail")))

    assert clipped.read == 3  # the fourth shared character may belong to a token that reaches across the cut
    assert clipped.first_changed_token == 3


def test_a_restored_history_reads_what_an_older_call_left() -> None:
    cache = PromptCache(CachePolicy("automatic"), COUNTER)
    cache.send(blocks(LONG, user("one"), user("two")))
    cache.send(blocks(LONG, user("summary")))
    restored = cache.send(blocks(LONG, user("one"), user("two"), user("three")))

    assert restored.read == 2002 + 5 + 5
    assert restored.first_changed_token == 2002


def test_a_summariser_call_warms_the_cache_and_moves_no_position() -> None:
    cache = PromptCache(CachePolicy("automatic"), COUNTER)
    cache.send(blocks(LONG, user("one")))
    summary = cache.send(blocks(LONG, user("one"), user("summarise the above")), purpose="summarizer")
    after = cache.send(blocks(LONG, user("one"), user("summarise this")))

    assert summary.read == 2002 + 5
    assert summary.first_changed_token is None
    assert after.read == 2002 + 5 + len("summarise th") - 1
    assert after.first_changed_token is None


def test_other_tools_share_nothing() -> None:
    cache = PromptCache(CachePolicy("automatic"), COUNTER)
    tools = (ToolDefinition("a"), ToolDefinition("b"))
    cache.send(blocks(LONG), tools=tools)

    assert cache.send(blocks(LONG), tools=tools[:1]).read == 0
    changed_back = cache.send(blocks(LONG), tools=tuple(tools))
    assert changed_back.read == 10 + 2002
    assert changed_back.first_changed_token == 0


def test_a_prefix_dies_without_use_and_lives_with_it() -> None:
    cache = PromptCache(CachePolicy("automatic", lifetime_s=300), COUNTER)
    prompt = blocks(LONG)
    assert cache.send(prompt, 0.0).read == 0
    assert cache.send(prompt, 250.0).read == 2002
    assert cache.send(prompt, 500.0).read == 2002
    assert cache.send(prompt, 801.0).read == 0
    assert cache.send(prompt, 10.0).read == 2002  # a clock that runs backwards counts as standing still


def test_a_clock_that_ran_backwards_does_not_age_what_was_just_sent() -> None:
    cache = PromptCache(CachePolicy("automatic", lifetime_s=300), COUNTER)
    cache.send(blocks(user("other")), 1000.0)
    cache.send(blocks(LONG), 10.0)
    assert cache.send(blocks(LONG), 1200.0).read == 2002


def test_a_hit_keeps_its_mark_alive() -> None:
    cache = PromptCache(ANTHROPIC, COUNTER)
    cache.send(blocks(LONG, user("a")), 0.0)
    cache.send(blocks(LONG, user("a"), user("b")), 200.0)
    assert cache.send(blocks(LONG, user("a"), user("c")), 450.0).read == 2005


def test_a_probe_leaves_no_trace() -> None:
    cache = PromptCache(CachePolicy("automatic"), COUNTER)
    cache.send(blocks(LONG, user("one")))
    probe = blocks(LONG, user("one"), user("what was the price?"))

    assert cache.peek(probe).read == 2007
    assert cache.send(blocks(LONG, user("one"), user("what was the price?"))).read == 2007


def test_without_a_cache_the_buckets_are_empty_and_changes_are_still_located() -> None:
    cache = PromptCache(CachePolicy(), COUNTER)
    cache.send(blocks(LONG, user("one")))
    use = cache.send(blocks(LONG, user("two")))

    assert (use.fresh, use.read, use.written) == (None, None, None)
    assert use.first_changed_token == 2002


def test_breakpoints_write_what_is_new_and_read_the_last_mark() -> None:
    cache = PromptCache(ANTHROPIC, COUNTER)
    first = cache.send(blocks(LONG, user("a" * 98)))
    second = cache.send(blocks(LONG, user("a" * 98), assistant("b" * 48), user("c" * 28)))

    assert (first.read, first.written, first.fresh) == (0, 2102, 3)
    assert (second.read, second.written, second.fresh) == (2102, 80, 3)


def test_an_edit_falls_back_to_the_mark_after_the_system_message() -> None:
    cache = PromptCache(ANTHROPIC, COUNTER)
    cache.send(blocks(LONG, user("a"), assistant("b"), user("c")))
    edited = cache.send(blocks(LONG, user("A"), assistant("b"), user("c"), user("d")))

    assert edited.read == 2002
    assert edited.written == 12


def test_a_turn_of_twenty_blocks_hides_the_previous_mark() -> None:
    calls = [ToolCall(f"c{i}", "get", "{}") for i in range(10)]
    turn = (assistant("", *calls), *(tool(call.id, "x") for call in calls))
    small = system("s" * 100)
    for extra, read in ((turn[:-1], 1102), (turn, 0)):
        cache = PromptCache(ANTHROPIC, COUNTER)
        cache.send(blocks(small, user("a" * 998)))
        assert cache.send(blocks(small, user("a" * 998), *extra)).read == read


def test_prompts_below_the_minimum_are_never_cached() -> None:
    for policy in (OPENAI, ANTHROPIC):
        cache = PromptCache(policy, COUNTER)
        prompt = blocks(system("s" * 900))
        cache.send(prompt)
        use = cache.send(prompt)
        assert (use.read, use.written, use.fresh) == (0, 0, 905)


# The same answers as comparing every call with every earlier one.

MESSAGES = [
    *(system(text) for text in ("s", "st")),
    *(user(text) for text in ("a", "ab", "abc", "abd", "b")),
    assistant("a"),
    assistant("", ToolCall("c", "f", "{1}")),
    assistant("", ToolCall("c", "f", "{2}")),
    tool("c", "abcdef"),
    tool("c", "abc"),
    Message("user", (Text("a"), Text("b"))),
]
TOOLS = ((), (ToolDefinition("t"),))


@dataclass
class Call:
    messages: list[Message]
    tools: tuple[ToolDefinition, ...]
    time_s: float


def plain_shared(first: list[Message], second: list[Message]) -> int:
    tokens = 0
    for a, b in zip(first, second, strict=False):
        if a == b:
            tokens += COUNTER.message(a)
            continue
        if (a.role, a.name, a.call_id) == (b.role, b.name, b.call_id):
            common = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(flat(a), flat(b), strict=False)))
            tokens += max(0, min(common - 1, COUNTER.message(a), COUNTER.message(b)))
        break
    return tokens


def flat(message: Message) -> str:
    """The wire form that texts are compared in, written out once more."""
    texts = [part.text for part in message.parts if isinstance(part, Text)]
    return "".join([*texts, *(f"\x1ec{call.id}\x1f{call.name}\x1f{call.arguments}" for call in message.calls)])


Session = list[tuple[tuple[Block, ...], tuple[ToolDefinition, ...], float | None, str]]


@dataclass
class PlainAutomatic:
    policy: CachePolicy
    past: list[Call] = field(default_factory=list)

    def read(self, call: Call, now_s: float | None) -> int:
        cutoff = -math.inf if now_s is None or self.policy.lifetime_s is None else now_s - self.policy.lifetime_s
        shared = max(
            (
                COUNTER.tools(call.tools) + plain_shared(call.messages, earlier.messages)
                for earlier in self.past
                if earlier.tools == call.tools and earlier.time_s >= cutoff
            ),
            default=0,
        )
        shared -= shared % self.policy.block_tokens
        return shared if shared >= self.policy.minimum_tokens else 0


@dataclass
class PlainBreakpoints:
    policy: CachePolicy
    marks: list[tuple[tuple[ToolDefinition, ...], list[Message], list[float]]] = field(default_factory=list)

    def send(self, call: Call, now_s: float | None, *, remember: bool) -> tuple[int, int]:
        cutoff = -math.inf if now_s is None or self.policy.lifetime_s is None else now_s - self.policy.lifetime_s
        wanted = [at for at in self.positions(call) if self.tokens(call, at) >= self.policy.minimum_tokens]
        hit = next(
            (
                mark
                for at in reversed(wanted)
                for position in range(at, -1, -1)
                if self.policy.lookback_blocks is None
                or sum(max(1, len(m.parts) + len(m.calls)) for m in call.messages[position:at])
                < self.policy.lookback_blocks
                for mark in self.marks
                if mark[0] == call.tools and mark[1] == call.messages[:position] and max(mark[2]) >= cutoff
            ),
            None,
        )
        read = self.tokens(call, len(hit[1])) if hit else 0
        written = max(0, self.tokens(call, wanted[-1]) - read) if wanted else 0
        if remember:
            for at in [*wanted, *([len(hit[1])] if hit else [])]:
                self.mark(call, at)
        return read, written

    def mark(self, call: Call, at: int) -> None:
        for tools, messages, times in self.marks:
            if tools == call.tools and messages == call.messages[:at]:
                times.append(call.time_s)
                return
        self.marks.append((call.tools, call.messages[:at], [call.time_s]))

    def tokens(self, call: Call, at: int) -> int:
        return COUNTER.tools(call.tools) + sum(map(COUNTER.message, call.messages[:at]))

    def positions(self, call: Call) -> list[int]:
        roles = [message.role for message in call.messages]
        found = {len(roles)} if roles else set()
        leading = next((i for i, role in enumerate(roles) if role != "system"), len(roles))
        if leading or call.tools:
            found.add(leading)
        ends = [i + 1 for i in range(len(roles)) if roles[i] in ("user", "tool")]
        runs = [end for end in ends if end == len(roles) or roles[end] not in ("user", "tool")]
        earlier = [end for end in runs if end < len(roles)]
        found.update(earlier[::-1][: self.policy.mark_last - 1])
        return sorted(found)


@st.composite
def sessions(draw: st.DrawFn) -> Session:
    """Calls that mostly extend, edit or revisit earlier prompts, sharing blocks as contexts do, or not."""
    message = st.sampled_from(MESSAGES)
    known: list[tuple[Block, ...]] = [()]
    calls = []
    clock = 0.0
    for _ in range(draw(st.integers(1, 12))):
        base = known[-1 - draw(st.integers(0, min(3, len(known) - 1)))]
        base = base[: draw(st.integers(max(0, len(base) - 3), len(base)))]
        new = [Block(tuple(run)) for run in draw(st.lists(st.lists(message, max_size=3), max_size=3))]
        prompt = (*base, *new)
        if draw(st.integers(0, 4)) == 0:  # the same messages in other blocks
            flat_messages = [message for block in prompt for message in block.messages]
            size = draw(st.integers(1, 4))
            prompt = tuple(Block(tuple(flat_messages[i : i + size])) for i in range(0, len(flat_messages), size))
        known.append(prompt)
        clock += draw(st.sampled_from([0.0, 1.0, 4.0, 11.0]))
        now = None if draw(st.integers(0, 9)) == 0 else clock
        who = draw(st.sampled_from(["agent", "agent", "agent", "summarizer", "probe"]))
        calls.append((prompt, draw(st.sampled_from((*TOOLS[:1] * 3, TOOLS[1]))), now, who))
    return calls


@settings(max_examples=200, deadline=None)
@given(sessions(), st.sampled_from([None, 10.0]), st.sampled_from([1, 4]), st.sampled_from([0, 8]))
def test_automatic_reads_equal_a_comparison_with_every_earlier_call(
    calls: Session, lifetime: float | None, step: int, minimum: int
) -> None:
    policy = CachePolicy("automatic", minimum_tokens=minimum, block_tokens=step, lifetime_s=lifetime)
    cache, plain = PromptCache(policy, COUNTER), PlainAutomatic(policy)
    previous: Call | None = None
    for prompt, tools, now, who in calls:
        messages = [message for block in prompt for message in block.messages]
        call = Call(messages, tools, math.inf if now is None else now)
        use = (
            cache.peek(prompt, now, tools=tools)
            if who == "probe"
            else cache.send(prompt, now, tools=tools, purpose=who)
        )
        assert use.read == plain.read(call, now)
        assert use.input_tokens == 3 + COUNTER.tools(tools) + sum(map(COUNTER.message, messages))
        assert use.fresh == use.input_tokens - use.read
        if who == "agent":
            assert use.first_changed_token == plain_change(previous, call)
            previous = call
        if who != "probe":
            plain.past.append(call)


def plain_change(previous: Call | None, call: Call) -> int | None:
    if previous is None:
        return None
    if previous.tools != call.tools:
        return 0
    if call.messages[: len(previous.messages)] == previous.messages:
        return None
    return COUNTER.tools(call.tools) + plain_shared(call.messages, previous.messages)


@settings(max_examples=200, deadline=None)
@given(sessions(), st.sampled_from([None, 10.0]), st.sampled_from([None, 3, 6]), st.integers(1, 3))
def test_breakpoint_reads_and_writes_equal_a_plain_list_of_marks(
    calls: Session, lifetime: float | None, lookback: int | None, last: int
) -> None:
    policy = CachePolicy(
        "breakpoints",
        minimum_tokens=4,
        lifetime_s=lifetime,
        lookback_blocks=lookback,
        mark_last=last,
        writes_cost=True,
    )
    cache, plain = PromptCache(policy, COUNTER), PlainBreakpoints(policy)
    for prompt, tools, now, who in calls:
        messages = [message for block in prompt for message in block.messages]
        call = Call(messages, tools, math.inf if now is None else now)
        expected = plain.send(call, now, remember=who != "probe")
        use = (
            cache.peek(prompt, now, tools=tools)
            if who == "probe"
            else cache.send(prompt, now, tools=tools, purpose=who)
        )
        assert (use.read, use.written) == expected
        assert use.fresh is not None
        assert min(use.fresh, use.read, use.written) >= 0
        assert use.fresh + use.read + use.written == use.input_tokens


@pytest.mark.parametrize("file", sorted(POLICIES.glob("*.yaml")), ids=lambda file: file.stem)
def test_every_shipped_policy_says_what_it_is(file: Path) -> None:
    node = yaml.safe_load(file.read_text())
    policy = cache_policy(node, "claude-haiku-4-5-20251001")

    assert node["about"]["description"].endswith(".")
    # A local llama.cpp server reuses any common prefix, however short; every provider states a minimum.
    assert policy.kind == "none" or policy.minimum_tokens > 0 or file.stem == "llama_cpp"
    assert policy.kind == "none" or node["about"]["source"].startswith("https://")


def test_the_minimum_depends_on_the_model() -> None:
    node = yaml.safe_load((POLICIES / "anthropic_5m.yaml").read_text())
    models = ("anthropic/claude-opus-4.6", "claude-sonnet-4-5", "claude-haiku-4-5-20251001", "")

    assert [cache_policy(node, model).minimum_tokens for model in models] == [4096, 1024, 4096, 1024]


def test_a_policy_key_with_a_typo_is_refused_with_a_suggestion() -> None:
    with pytest.raises(ConfigurationError, match=r"cache_policy\.lifetime.*did you mean lifetime_s"):
        cache_policy({"kind": "automatic", "lifetime": 300})
    with pytest.raises(ConfigurationError, match=r"block_tokens: found 0"):
        cache_policy({"kind": "automatic", "block_tokens": 0})

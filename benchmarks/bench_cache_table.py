"""The cache effect of shipped strategies on one synthetic tool loop: published measurements beside ours.

Published are runs of the frameworks' own packages; ours are the presets of the same names. Both send a loop of a task
and forty calls with a result of 400, then 4,000 characters: forty-one requests. Costs are those of the input, next to
sending everything, at two prices: A reads at 0.10 and writes at 1.25 of the plain price (as Anthropic bills), B reads
at 0.25 and writes at 1.0. Nothing expires, no block is too small, only the previous request is in the cache, and what
the summariser costs is left out. Run with ``python benchmarks/bench_cache_table.py``.

Why figures differ: percentages depend on how large a hop is beside its result, and the published ones were taken on
each package's own serialisation (a hop of some 420 to 820 characters around a result of 400). Here every message is
the same for all: its text, calls with names and arguments, and a frame. Limits given in tokens are counted by the
framework's rule where the lab has it, otherwise as a quarter of the characters, so a threshold may be reached a hop
earlier or later. With results of 4,000 characters the serialisation hardly matters, and the tables agree to a point.
OpenHands drops results without their call when it builds a request, hence ``repair`` in its row.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from compaction_lab.accounting.cache import PromptCache
from compaction_lab.accounting.cache_policy import CachePolicy
from compaction_lab.arm import ArmRun, Slot, occasions
from compaction_lab.conversation.context import Context
from compaction_lab.conversation.counting import counting_rule
from compaction_lab.conversation.log import Log
from compaction_lab.conversation.messages import JSON, Message, ToolCall, assistant, system, tool, user
from compaction_lab.models.base import ModelReply
from compaction_lab.strategies.registry import strategy

HOPS = 40
RESULTS = (400, 4_000)
PRICES = {"A": (0.10, 1.25), "B": (0.25, 1.0)}
"""Read and write price by the published name of the price list."""
SUMMARY = "The work so far: files were listed and read, the failing test was found, nothing was changed yet. " * 2


@dataclass(frozen=True)
class Published:
    """A row of the published table: cost in percent more (or less) than sending everything, by result size and price.

    ``sent`` (share of the uncompacted) and ``read`` (share of what was sent) are those at 400 characters; ``costs``
    holds ``{400: (A, B), 4000: (A, B)}``, less what was not measured.
    """

    name: str
    preset: str
    parameters: Mapping[str, JSON]
    sent: float
    read: float
    costs: Mapping[int, tuple[float, float]]


@dataclass
class Measured:
    """What the requests of one arm sent and read, in characters."""

    requests: int = 0
    sent: int = 0
    read: int = 0
    breaks: int = 0

    def cost(self, price: str) -> float:
        """Return what the input costs at a price list, in characters at the plain price."""
        read, write = PRICES[price]
        return self.read * read + (self.sent - self.read) * write

    def percent(self, everything: Measured, price: str) -> float:
        """Return how much more (or less) that is than what sending everything costs, in percent."""
        return 100 * (self.cost(price) / everything.cost(price) - 1)


@dataclass(eq=False)
class Characters:
    """Counts what a message would be on the wire, roughly: its text and calls, and a frame."""

    request_overhead: int = 0
    frame: int = 12
    tokenizer: Characters = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Be the tokenizer too: a character is a token."""
        self.tokenizer = self

    def count(self, text: str) -> int:
        """Return the characters."""
        return len(text)

    def message(self, message: Message) -> int:
        """Return the characters of a message."""
        return self.frame + len(message.text) + sum(len(call.name) + len(call.arguments) for call in message.calls)

    def tools(self, definitions: Sequence[object]) -> int:
        """Return nothing: the loop offers no tools."""
        return 0 * len(definitions)


def loop(result_characters: int) -> Log:
    """Return the conversation: instructions, a task and forty calls with a result of the given length."""
    messages = [system("You are a coding agent."), user("Fix the failing test.")]
    for hop in range(HOPS):
        call = ToolCall(f"call_{hop}", "run", f'{{"command": "cat {hop:02}.py"}}')
        text = (f"{hop:02} def step(value): return value + 1\n" * (result_characters // 30 + 1))[:result_characters]
        messages += [assistant("", call), tool(call.id, text, name="run")]
    return Log(messages)


def requests(log: Log, preset: str, parameters: Mapping[str, JSON]) -> list[Context]:
    """Return what each call is sent under a strategy; summaries are a constant text."""
    placed = strategy(preset, **parameters)
    rule = counting_rule(str(parameters.get("tokenizer") or "characters"))
    arm = ArmRun(log, (Slot(placed.run, placed.when, placed.history, rule),))
    sent = []
    for occasion, stop, _ in occasions(log):
        occurring = arm.occasion(occasion, stop)
        try:
            asked = next(occurring)
            while True:
                asked = occurring.send(tuple(ModelReply(SUMMARY, finish="stop") for _ in asked))
        except StopIteration as end:
            if occasion == "before_call":
                sent.append(end.value)
    return sent


def measured(sent: Sequence[Context]) -> Measured:
    """Return what the requests sent and read, each with only the one before it in the cache."""
    policy = CachePolicy("automatic", writes_cost=True)
    total, counter = Measured(), Characters()
    for previous, request in zip((None, *sent), sent, strict=False):
        cache = PromptCache(policy, counter)  # a new one: what lies further back than one request is gone
        if previous is not None:
            cache.send(previous.blocks)
        use = cache.send(request.blocks)
        total.requests += 1
        total.sent += use.input_tokens
        total.read += use.read or 0
        total.breaks += use.first_changed_token is not None
    return total


def _row(
    name: str,
    preset: str,
    parameters: Mapping[str, JSON],
    small: tuple[float, float, float, float],
    large: tuple[float, float] | None = None,
) -> Published:
    sent, read, a, b = small
    return Published(name, preset, parameters, sent, read, {400: (a, b), **({4_000: large} if large else {})})


_CLEAR: Mapping[str, JSON] = {"keep": 3, "trigger": {"tokens_exceed": 1000}, "tokenizer": "langchain_approximate"}
_STORED: JSON = {"when": "before_call", "history": "stored"}
_CHARACTERS: Mapping[str, JSON] = {"tokenizer": "characters"}

PUBLISHED: tuple[Published, ...] = (
    _row(
        "LangChain ClearToolUses 1000, keep 3", "langchain/clear_tool_uses_edit", _CLEAR, (32, 0.59, 17, -37), (13, -49)
    ),
    _row(
        "the same, kept in state",
        "langchain/clear_tool_uses_edit",
        {**_CLEAR, "placement": _STORED},
        (33, 0.64, 8, -40),
        (13, -49),
    ),
    _row(
        "the same, clear_at_least 500",
        "langchain/clear_tool_uses_edit",
        {**_CLEAR, "clear_at_least": 500},
        (84, 0.94, -8, -13),
        (-1, -3),
    ),
    _row(
        "LangChain trim_messages 1500",
        "langchain_core/trim_messages",
        {"max_tokens": 1500},
        (47, 0.14, 227, 46),
        (-61, -83),
    ),
    _row(
        "LangChain Summarization 2000, keep 6",
        "langchain/summarization_middleware",
        {"trigger": {"tokens": 2000}, "keep": {"messages": 6}, "tokenizer": "langchain_approximate"},
        (41, 0.86, -32, -49),
        (14, -50),
    ),
    _row(
        "SWE-agent LastN 5, polling 1",
        "sweagent/last_n_observations",
        {"n": 5, "polling": 1},
        (34, 0.35, 87, -12),
        (78, -21),
    ),
    _row(
        "SWE-agent LastN 5, polling 5",
        "sweagent/last_n_observations",
        {"n": 5, "polling": 5},
        (41, 0.79, -8, -41),
        (-18, -50),
    ),
    _row(
        "SWE-agent LastN 5, polling 10",
        "sweagent/last_n_observations",
        {"n": 5, "polling": 10},
        (49, 0.85, -14, -38),
        (-23, -46),
    ),
    _row("OpenHands masking 10", "openhands/observation_masking", {"attention_window": 10}, (31, 0.28, 83, -15)),
    _row(
        "OpenHands recent 1/12",
        "openhands/recent_events",
        {"keep_first": 1, "max_events": 12, "repair": True},
        (23, 0.01, 78, -21),
    ),
    _row("OpenHands amortized 24", "openhands/amortized_forgetting", {"max_size": 24}, (40, 0.80, -16, -45)),
    _row(
        "Strands SlidingWindow 10",
        "strands/sliding_window_conversation_manager",
        {"window_size": 10, "per_turn": True},
        (23, 0.03, 80, -21),
        (80, -21),
    ),
    _row(
        "Strands SlidingWindow 20",
        "strands/sliding_window_conversation_manager",
        {"window_size": 20, "per_turn": True},
        (43, 0.10, 214, 39),
        (214, 40),
    ),
    _row(
        "Agent Framework SlidingWindow 5",
        "agent_framework/sliding_window",
        {"keep_last_groups": 5},
        (23, 0.04, 80, -21),
        (80, -21),
    ),
    _row(
        "Agent Framework Truncation 20, 10",
        "agent_framework/truncation",
        {"max_n": 20, "compact_to": 10},
        (30, 0.76, -29, -55),
        (-29, -56),
    ),
    _row(
        "Agent Framework ToolResult 3",
        "agent_framework/tool_result",
        {"keep_last_tool_call_groups": 3},
        (103, 0.82, 102, 38),
        (100, 36),
    ),
    _row(
        "Agent Framework Selective 3",
        "agent_framework/selective_tool_call",
        {"keep_last_tool_call_groups": 3},
        (14, 0.04, 12, -51),
        (12, -51),
    ),
    _row(
        "Agent Framework ContextWindow 3000/100",
        "agent_framework/context_window",
        {"max_context_window_tokens": 3000, "max_output_tokens": 100},
        (48, 0.51, 103, 3),
        (-59, -81),
    ),
    _row(
        "AutoGen HeadAndTail 2/10",
        "autogen_core/head_and_tail_chat_completion_context",
        {"head_size": 2, "tail_size": 10},
        (23, 0.05, 78, -22),
        (77, -22),
    ),
    _row(
        "AutoGen Buffered 12",
        "autogen_core/buffered_chat_completion_context",
        {"buffer_size": 12},
        (27, 0.04, 111, -7),
        (111, -7),
    ),
    _row(
        "Inspect Edit 2000, keep 3",
        "inspect_ai/compaction_edit",
        {"trigger": {"tokens_exceed": 2000}, "keep_tool_uses": 3, **_CHARACTERS},
        (50, 0.88, -26, -41),
    ),
    _row(
        "Inspect Trim 2000, 0.5",
        "inspect_ai/compaction_trim",
        {"trigger": {"tokens_exceed": 2000}, "preserve": 0.5, **_CHARACTERS},
        (56, 0.86, -6, -30),
        (-61, -83),
    ),
    _row(
        "Inspect Summary 2000",
        "inspect_ai/compaction_summary",
        {"threshold": 2000, **_CHARACTERS},
        (42, 0.89, -37, -50),
        (-80, -91),
    ),
)
"""The published table, percent; measured with the packages named in each preset's ``mirrors``."""


def compared(result_characters: int) -> Iterator[tuple[Published, Measured, Measured]]:
    """Yield each published row with what we measure, and what sending everything measures."""
    log = loop(result_characters)
    everything = measured(requests(log, "none", {}))
    for row in PUBLISHED:
        yield row, measured(requests(log, row.preset, row.parameters)), everything


def main() -> None:
    """Print the table."""
    for size in RESULTS:
        print(f"\nResults of {size:,} characters")
        print(f"{'':42}  published: sent read     A     B     ours: sent read breaks   A     B")
        for row, ours, everything in compared(size):
            a, b = (f"{percent:+5.0f}" for percent in row.costs[size]) if size in row.costs else ("    -", "    -")
            shares = f"{row.sent:4.0f} {row.read:4.2f}" if size == RESULTS[0] else "   -    -"
            changes = " ".join(f"{ours.percent(everything, price):+5.0f}" for price in PRICES)
            sent, read = 100 * ours.sent / everything.sent, ours.read / ours.sent
            found = f"{sent:4.0f} {read:4.2f} {ours.breaks:4} {changes}"
            print(f"{row.name:<42}             {shares} {a} {b}           {found}")


if __name__ == "__main__":
    main()

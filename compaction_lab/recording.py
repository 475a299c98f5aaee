"""What happens in one unit, as rows: calls with their tokens, money and latency, firings, probes, messages.

Counting and accounting meet here; deciding (strategies) and answering (models) happen elsewhere.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import cast

from compaction_lab.accounting.cache import CacheUse, PromptCache
from compaction_lab.accounting.cache_policy import CachePolicy
from compaction_lab.accounting.latency import LatencyModel
from compaction_lab.accounting.prices import Price, price_model
from compaction_lab.accounting.recorded import recorded_bill
from compaction_lab.arm import ArmRun, Firing, Slot
from compaction_lab.conversation.context import Block, Context, Edit
from compaction_lab.conversation.json_values import canonical_json
from compaction_lab.conversation.messages import Message, Text, ToolDefinition, Usage
from compaction_lab.conversation.tokens import TokenCounter
from compaction_lab.importers.lab import message_to_lab
from compaction_lab.models.base import ModelReply, ModelRequest
from compaction_lab.records import Row, UnitResult


@dataclass(frozen=True, slots=True)
class Accounts:
    """How a unit is counted and priced: the same for all arms of a run.

    Parameters
    ----------
    counter
        The run's counting rule, used by every token column.
    price
        What the model is priced as; ``None`` when unknown, and then no cost is stated.
    cache_policy
        How the provider's prompt cache is simulated.
    latency
        Latency of calls that were neither measured nor recorded.
    recorded_bill
        Whether recorded latency and cost belong to this arm: true of the baseline arm alone.
    prices
        Prices of real models by name, which are priced as themselves; ``None`` when unknown.
    listed_price
        The price of a model by the name a recording gives it, for usage recorded without its cost.
    """

    counter: TokenCounter
    price: Price | None = None
    cache_policy: CachePolicy = field(default_factory=CachePolicy)
    latency: LatencyModel = field(default_factory=LatencyModel)
    recorded_bill: bool = False
    prices: Mapping[str, Price | None] = field(default_factory=dict)
    listed_price: Callable[[str], Price | None] = price_model

    def price_of(self, model: str) -> Price | None:
        """Return the price of a call by who answered it."""
        return self.prices.get(model, self.price)


@dataclass(slots=True)
class Recorder:
    """Writes the rows of one unit.

    Parameters
    ----------
    accounts
        How to count and price.
    tools
        Tool definitions sent with every agent call.
    summaries_block
        Whether a summary is waited for; its latency then belongs to the call it precedes.
    """

    accounts: Accounts
    tools: tuple[ToolDefinition, ...] = ()
    summaries_block: bool = True
    result: UnitResult = field(default_factory=UnitResult)
    call: int = field(init=False, default=0)
    tools_tokens: int = field(init=False)
    overhead_tokens: int = field(init=False)
    _caches: dict[str, PromptCache] = field(init=False, default_factory=dict)
    _summary_latency_s: float = field(init=False, default=0.0)
    _fired: bool = field(init=False, default=False)

    def __post_init__(self) -> None:
        """Count the fixed part of every request once."""
        counter = self.accounts.counter
        self.tools_tokens = counter.tools(self.tools)
        self.overhead_tokens = self.tools_tokens + counter.request_overhead

    def agent_call(
        self,
        turn: int,
        stop: int,
        arm: ArmRun,
        sent: Context,
        answer: tuple[Message, ...],
        *,
        model: str,
        simulated: bool,
        now_s: float | None = None,
        reply: ModelReply | None = None,
        findings: Row | None = None,
    ) -> None:
        """Record one agent call: the history before the strategies acted, what was sent, what came back.

        ``findings`` counts the messages sent that break each validity rule; ``None`` when nobody looked.
        """
        self.call += 1
        counter = self.accounts.counter
        use = self._cache(model).send(sent.blocks, now_s, tools=self.tools)
        output = sum(map(counter.output, answer))
        reasoning = sum(map(counter.reasoning, answer))
        row = self._row(turn, self.call, "agent", use, output, reasoning, reply, self.accounts.price_of(model))
        row |= {
            "context_tokens_before": arm.shown.tokens(counter) + self.overhead_tokens,
            "context_tokens_after": use.input_tokens,
            "compacted": self._fired,
            "first_changed_token": use.first_changed_token,
            "tool_calls": sum(len(message.calls) for message in answer),
            "stop": stop,
            "simulated": simulated,
            "findings": findings,
        }
        if reply is None and self.accounts.recorded_bill:
            latencies = [message.latency_s for message in answer if message.latency_s is not None]
            if latencies:
                row |= {"latency_s": max(latencies), "latency_source": "recorded"}
            row["cost_billed_usd"] = recorded_bill(answer, self.accounts.listed_price)
        if self._summary_latency_s and isinstance(row["latency_s"], float):
            row["latency_s"] += self._summary_latency_s
            self._summary_latency_s = 0.0
        self._fired = False
        self.result.calls.append(row)
        self.result.timings.append({"call": self.call, "strategy_s": arm.strategy_s})

    def request(
        self, turn: int, request: ModelRequest, reply: ModelReply, *, model: str, simulated: bool, before_call: bool
    ) -> None:
        """Record a call of the summarizer, a reader or a judge, under the number of the agent call it belongs to.

        That is the call it precedes (``before_call``) or the last one. Probes are asked on a fork and leave no trace in
        the prompt cache.
        """
        counter = self.accounts.counter
        cache = self._cache(model)
        blocks = (Block((), request.messages),)
        if request.purpose == "summarizer":
            use = cache.send(blocks, None, tools=request.tools, purpose="summarizer")
        else:
            use = cache.peek(blocks, None, tools=request.tools)
        answer = Message("assistant", (Text(reply.text),) if reply.text else (), reply.calls)
        number = self.call + 1 if before_call else self.call
        price = self.accounts.price_of(model)
        row = self._row(turn, number, request.purpose, use, counter.output(answer), 0, reply, price)
        row |= {
            "context_tokens_before": use.input_tokens,
            "context_tokens_after": use.input_tokens,
            "compacted": False,
            "first_changed_token": None,
            "tool_calls": len(reply.calls),
            "simulated": simulated,
        }
        if request.purpose == "summarizer" and self.summaries_block and isinstance(row["latency_s"], float):
            self._summary_latency_s += row["latency_s"]
        self.result.calls.append(row)

    def _row(
        self,
        turn: int,
        call: int,
        purpose: str,
        use: CacheUse,
        output: int,
        reasoning: int,
        reply: ModelReply | None,
        price: Price | None,
    ) -> Row:
        reported = reply.usage if reply is not None else None
        if reported is not None:
            spent = reported
        elif use.fresh is not None:
            spent = Usage(use.fresh, use.read or 0, use.written or 0, output, reasoning)
        else:
            spent = Usage(use.input_tokens, 0, 0, output, reasoning)
        split = reported is not None or use.fresh is not None
        measured_s = None if reply is None else reply.latency_s
        real: Row = {}
        if reply is not None and (measured_s is not None or reply.cached):
            real = {"cached": reply.cached, "first_token_s": reply.first_token_s, "finish": reply.finish}
        return {
            "turn": turn,
            "call": call,
            "purpose": purpose,
            "input_tokens": spent.input_tokens,
            "fresh_input_tokens": spent.fresh_input_tokens if split else None,
            "cache_read_tokens": spent.cache_read_tokens if split else None,
            "cache_write_tokens": spent.cache_write_tokens if split else None,
            "output_tokens": spent.output_tokens,
            "reasoning_tokens": spent.reasoning_tokens,
            "latency_s": self.accounts.latency.seconds(spent) if measured_s is None else measured_s,
            "latency_source": "modelled" if measured_s is None else "measured",
            "cost_uncached_usd": None if price is None else price.cost_uncached(spent),
            "cost_cached_usd": price.cost(spent) if price is not None and split else None,
            "cost_billed_usd": None if reply is None else reply.cost_usd,
            "error": "" if reply is None else reply.error,
            **real,
        }

    def _cache(self, model: str) -> PromptCache:
        cache = self._caches.get(model)
        if cache is None:
            cache = self._caches[model] = PromptCache(self.accounts.cache_policy, self.accounts.counter)
        return cache

    def firings(self, turn: int, stop: int, arm: ArmRun, *, before_call: bool) -> None:
        """Record what the strategies did at the last occasion of ``arm``."""
        self._fired = self._fired or (before_call and any(firing.changed for firing in arm.firings))
        for firing in arm.firings:
            self.result.compactions.append(
                self._firing(turn, stop, firing, arm.slots[firing.slot], before_call=before_call)
            )

    def _firing(self, turn: int, stop: int, firing: Firing, slot: Slot, *, before_call: bool) -> Row:
        counter = self.accounts.counter
        keys = [key for edit in firing.edits for key in (*edit.keys, *([edit.new.key] if edit.new else []))]
        before, after = firing.before, firing.after
        return {
            "turn": turn,
            "call": self.call + 1 if before_call else self.call,
            "when": firing.when,
            "trigger": firing.reason,
            "tokens_before": before.tokens(counter) + self.overhead_tokens,
            "tokens_after": after.tokens(counter) + self.overhead_tokens,
            "strategy_tokens_before": before.tokens(slot.counter) + slot.overhead_tokens,
            "strategy_tokens_after": after.tokens(slot.counter) + slot.overhead_tokens,
            "first_changed_token": before.tokens_before(min(keys), counter) + self.tools_tokens if keys else None,
            "edits": [self._edit(edit, before) for edit in firing.edits],
            "outcome": firing.outcome,
            "slot": firing.slot,
            "history": firing.history,
            "base": firing.base,
            "stop": stop,
        }

    def _edit(self, edit: Edit, before: Context) -> Row:
        counter = self.accounts.counter
        hidden = [message for key in edit.keys if (message := before.get(key)) is not None]
        shown: list[Message] = []
        new: Row | None = None
        if edit.new is not None:
            shown.append(edit.new.message)
            new = {"key": list(edit.new.key), "sha256": self.message(edit.new.message)}
        elif edit.kind == "restored":
            shown.extend(before.log.messages[index] for index, _ in edit.keys)
        return {
            "kind": edit.kind,
            "keys": [list(key) for key in edit.keys],
            "new": new,
            "tokens_before": sum(map(counter.message, hidden)),
            "tokens_after": sum(map(counter.message, shown)),
        }

    def message(self, message: Message) -> str:
        """Keep a message once and return its sha256."""
        kept = message.memo.get("stored")
        if kept is None:
            row = message_to_lab(message)
            digest = hashlib.sha256(canonical_json(row).encode("utf-8", "surrogatepass")).hexdigest()
            kept = message.memo["stored"] = (digest, row)
        digest, row = cast("tuple[str, Row]", kept)
        self.result.messages.setdefault(digest, row)
        return digest

    def log(self, messages: Iterable[Message]) -> None:
        """Keep the whole log, by the hashes of its messages in order."""
        self.result.log = [self.message(message) for message in messages]

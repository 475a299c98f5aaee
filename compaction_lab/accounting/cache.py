"""The prompt cache that the calls of one arm of one unit would have met, call by call.

Tokens only; `prices` turns them into money. Arms and units never share a cache, and a unit starts cold.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from dataclasses import dataclass
from typing import TYPE_CHECKING

from compaction_lab.accounting.prefix_tree import (
    NEVER,
    Match,
    Node,
    PrefixTree,
    Prompt,
    PromptBlock,
    PromptCounter,
    extend,
    same_items,
    shared_messages,
    shared_tokens,
)

if TYPE_CHECKING:
    from compaction_lab.accounting.cache_policy import CachePolicy
    from compaction_lab.conversation.messages import Message, ToolDefinition
    from compaction_lab.models.base import Purpose


@dataclass(slots=True)
class CacheUse:
    """What one call sent and how the cache split it; the three parts sum to ``input_tokens``.

    ``fresh, read, written`` are ``None`` without a cache. ``first_changed_token`` is the position, tools included, of
    the first token in which the call departs from the previous agent call's prompt; ``None`` for the first call and
    when that prompt is wholly a prefix of this one.
    """

    input_tokens: int
    fresh: int | None = None
    read: int | None = None
    written: int | None = None
    first_changed_token: int | None = None


@dataclass(slots=True)
class _Offer:
    """The prompts sent under one list of tool definitions, which come first in every prompt."""

    tools: tuple[ToolDefinition, ...]
    tokens: int
    tree: PrefixTree


class PromptCache:
    """The cache of one arm, one unit and one model; a value of the replay loop, not to be shared.

    A call reads the longest prefix it shares with any earlier call within its lifetime, whoever made it. Prompts under
    different tool definitions share nothing. Calls without a time never expire and see everything; a time earlier than
    the last one counts as the last one.

    Parameters
    ----------
    policy
        The provider's rules.
    counter
        Counts messages, tools and the request overhead (sent after the messages, so never read).

    Notes
    -----
    Cost of a call: its number of blocks, plus the messages after the first change.
    """

    def __init__(self, policy: CachePolicy, counter: PromptCounter) -> None:
        self.policy = policy
        self.counter = counter
        self._overhead = counter.request_overhead
        self._offers: list[_Offer] = []
        self._agent_offer: _Offer | None = None
        self._agent_prompt = Prompt()
        self._clock_s = NEVER

    def send(
        self,
        blocks: tuple[PromptBlock, ...],
        now_s: float | None = None,
        *,
        tools: tuple[ToolDefinition, ...] = (),
        purpose: Purpose = "agent",
    ) -> CacheUse:
        """Return how a call meets the cache, and remember the call."""
        return self._call(blocks, now_s, tools, purpose, remember=True)

    def peek(
        self,
        blocks: tuple[PromptBlock, ...],
        now_s: float | None = None,
        *,
        tools: tuple[ToolDefinition, ...] = (),
    ) -> CacheUse:
        """Return how a call would meet the cache, and leave no trace of it (a probe, a what-if)."""
        return self._call(blocks, now_s, tools, "agent", remember=False)

    def _call(
        self,
        blocks: tuple[PromptBlock, ...],
        now_s: float | None,
        tools: tuple[ToolDefinition, ...],
        purpose: Purpose,
        *,
        remember: bool,
    ) -> CacheUse:
        offer = self._offer(tools)
        policy = self.policy
        if policy.kind == "none":
            return self._without_cache(blocks, offer, purpose, remember=remember)
        cutoff_s, stamp_s = NEVER, math.inf
        if now_s is not None:
            stamp_s = max(now_s, self._clock_s)
            if policy.lifetime_s is not None:
                cutoff_s = stamp_s - policy.lifetime_s
            if remember:
                self._clock_s = stamp_s

        automatic = policy.kind == "automatic"
        match = offer.tree.match(blocks, purpose, cutoff_s if automatic else NEVER)
        use = CacheUse(offer.tokens + match.prompt.tokens + self._overhead)
        if purpose == "agent":
            use.first_changed_token = self._first_change(match, offer)
        if automatic:
            self._split_automatically(use, match, offer, cutoff_s)
            if remember:
                offer.tree.insert(match, purpose, stamp_s)
        else:
            self._split_at_breakpoints(use, match, offer, cutoff_s, stamp_s, purpose, remember=remember)
        if remember and purpose == "agent":
            self._agent_offer, self._agent_prompt = offer, match.prompt
        return use

    def _offer(self, tools: tuple[ToolDefinition, ...]) -> _Offer:
        for offer in self._offers:
            if offer.tools is tools or offer.tools == tools:
                return offer
        expires = self.policy.kind == "automatic" and self.policy.lifetime_s is not None
        offer = _Offer(tools, self.counter.tools(tools) if tools else 0, PrefixTree(self.counter, expires=expires))
        self._offers.append(offer)
        return offer

    def _without_cache(
        self, blocks: tuple[PromptBlock, ...], offer: _Offer, purpose: Purpose, *, remember: bool
    ) -> CacheUse:
        last = self._agent_prompt
        same = same_items(blocks, last.blocks)
        prompt = extend(last, same, blocks, self.counter)
        use = CacheUse(offer.tokens + prompt.tokens + self._overhead)
        if purpose == "agent":
            depth, tokens = shared_messages(prompt, last, same, self.counter)
            use.first_changed_token = self._change(prompt, depth, tokens, offer)
            if remember:
                self._agent_offer, self._agent_prompt = offer, prompt
        return use

    def _first_change(self, match: Match, offer: _Offer) -> int | None:
        return self._change(match.prompt, match.trail_depth, match.trail_tokens, offer)

    def _change(self, prompt: Prompt, depth: int, tokens: int, offer: _Offer) -> int | None:
        """Return where ``prompt`` departs from the previous agent prompt, with which it shares ``depth`` messages."""
        previous = self._agent_prompt
        if self._agent_offer is None:
            return None
        if self._agent_offer is not offer:
            return 0
        if depth == previous.length:
            return None
        if depth < prompt.length:
            tokens += shared_tokens(prompt.message(depth), previous.message(depth), self.counter)
        return offer.tokens + tokens

    def _split_automatically(self, use: CacheUse, match: Match, offer: _Offer, cutoff_s: float) -> None:
        policy = self.policy
        shared = 0
        if offer.tree.lineages and (match.alive_depth or self._lives(offer.tree, cutoff_s)):
            shared = offer.tokens + match.alive_tokens
            if match.alive_depth < match.prompt.length:
                shared += offer.tree.partial_tokens(match, cutoff_s)
        use.read = self._step(shared)
        kept = self._step(use.input_tokens - self._overhead) if policy.writes_cost else 0
        use.written = max(0, kept - use.read)
        use.fresh = use.input_tokens - use.read - use.written

    def _step(self, tokens: int) -> int:
        floored = tokens - tokens % self.policy.block_tokens
        return floored if floored >= self.policy.minimum_tokens else 0

    @staticmethod
    def _lives(tree: PrefixTree, cutoff_s: float) -> bool:
        """Whether any call under these tools is recent enough for its tool definitions to be read."""
        return any(lineage.now_s >= cutoff_s for lineage in tree.lineages.values()) or tree.root.used_s >= cutoff_s

    def _split_at_breakpoints(
        self,
        use: CacheUse,
        match: Match,
        offer: _Offer,
        cutoff_s: float,
        stamp_s: float,
        purpose: Purpose,
        *,
        remember: bool,
    ) -> None:
        prompt = match.prompt
        wanted = [
            (at, offer.tokens + prompt.tokens_before(at, self.counter)) for at in self._breakpoints(prompt, offer)
        ]
        written = [(at, tokens) for at, tokens in wanted if tokens >= self.policy.minimum_tokens]
        hit = self._hit(match, [at for at, _ in written], cutoff_s)
        use.read = hit[1] if hit else 0
        use.written = max(0, written[-1][1] - use.read) if written else 0
        use.fresh = use.input_tokens - use.read - use.written
        if not remember:
            return
        node: Node | None = offer.tree.insert(match, purpose, stamp_s)
        marks = sorted({*written, *((hit,) if hit else ())}, reverse=True)
        for at, tokens in marks:
            while node is not None and node.parent is not None and node.parent.depth >= at:
                node = node.parent
            if node is not None:
                node.mark(at, tokens, stamp_s)

    def _breakpoints(self, prompt: Prompt, offer: _Offer) -> list[int]:
        """Return the marked positions (messages before the mark), in order."""
        marks: set[int] = set()
        if self.policy.mark_prefix:
            at = 0
            while at < prompt.length and prompt.message(at).role in ("system", "developer"):
                at += 1
            if at or offer.tokens:
                marks.add(at)
        if self.policy.mark_last and prompt.length:
            marks.add(prompt.length)
        at = prompt.length
        for _ in range(self.policy.mark_last - 1):
            while at and prompt.message(at - 1).role in ("user", "tool"):
                at -= 1
            while at and prompt.message(at - 1).role not in ("user", "tool"):
                at -= 1
            if at:
                marks.add(at)
        return sorted(marks)

    def _hit(self, match: Match, breakpoints: list[int], cutoff_s: float) -> tuple[int, int] | None:
        """Return the longest living marked prefix that a breakpoint reaches, as messages and tokens."""
        lookback = self.policy.lookback_blocks
        for at in reversed(breakpoints):
            limit = min(at, match.depth)
            lowest = 0 if lookback is None else at - lookback + 1  # a message is at least one block
            node: Node | None = match.node
            while node is not None and node.depth >= lowest:
                for i in range(bisect_right(node.positions, limit) - 1, -1, -1):
                    position = node.positions[i]
                    if position < lowest or not self._within_reach(match.prompt, position, at):
                        node = None
                        break
                    tokens, used_s = node.marks[position]
                    if used_s >= cutoff_s:
                        return position, tokens
                else:
                    node = node.parent
        return None

    def _within_reach(self, prompt: Prompt, position: int, at: int) -> bool:
        """Whether a breakpoint at ``at`` looks back as far as ``position``."""
        left = self.policy.lookback_blocks
        if left is None:
            return True
        for i in range(at - 1, position - 1, -1):
            left -= content_blocks(prompt.message(i))
            if left <= 0:
                return False
        return True


def content_blocks(message: Message) -> int:
    """Return how many content blocks a message is sent as: its parts and calls, at least one."""
    return max(1, len(message.parts) + len(message.calls))

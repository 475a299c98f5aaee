"""A compressed tree of the prompts already sent, so that the longest prefix shared with *any* of them is found cheaply.

Positions here count messages and the tokens of messages; tool definitions and request overhead are the caller's.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field
from operator import is_
from typing import Protocol, TypeAlias, TypeVar

from compaction_lab.conversation.messages import Media, Message, Opaque, Part, Reasoning, Text, ToolDefinition

NEVER = -math.inf
"""The last use of what no call has used; as a cutoff it lets nothing expire."""


class TextCounter(Protocol):
    """Counts the tokens of plain text."""

    def count(self, text: str) -> int:
        """Return the number of tokens of ``text``."""
        ...


class PromptCounter(Protocol):
    """Counts what a request consists of; `compaction_lab.conversation.tokens.TokenCounter` is the usual one."""

    @property
    def tokenizer(self) -> TextCounter:
        """Counter of plain text."""
        ...

    @property
    def request_overhead(self) -> int:
        """Tokens each request costs beside its tools and messages."""
        ...

    def message(self, message: Message) -> int:
        """Return the tokens of one message, its own overhead included."""
        ...

    def tools(self, definitions: tuple[ToolDefinition, ...]) -> int:
        """Return the tokens of the tool definitions."""
        ...


class PromptBlock(Protocol):
    """A run of messages shared by identity between prompts wherever nothing changed."""

    @property
    def messages(self) -> tuple[Message, ...]:
        """The messages, in order."""
        ...

    def tokens(self, counter: PromptCounter) -> int:
        """Return the tokens of all messages; memoised by the block."""
        ...


TextKey: TypeAlias = tuple[str, str, str, str]
"""Role, name and call id, which must be equal, then the text that is compared character by character."""


def _part_text(part: Part) -> str:
    match part:
        case Text(text=text):
            return text
        case Reasoning(text=text, opaque=opaque):
            return f"\x1er{text}\x1f{opaque}"
        case Media():
            return (
                f"\x1em{part.kind}\x1f{part.mime}\x1f{part.byte_size}\x1f{part.width}x{part.height}\x1f{part.payload}"
            )
        case Opaque(provider=provider, data=data):
            return f"\x1eo{provider}\x1f{data}"


def text_key(message: Message) -> TextKey:
    """Return what two differing messages are compared by; plain text is not copied."""
    if len(message.parts) == 1 and not message.calls and isinstance(message.parts[0], Text):
        text = message.parts[0].text
    else:
        pieces = [_part_text(part) for part in message.parts]
        pieces += [f"\x1ec{call.id}\x1f{call.name}\x1f{call.arguments}" for call in message.calls]
        text = "".join(pieces)
    return (message.role, message.name, message.call_id, text)


def common_length(first: str, second: str) -> int:
    """Return the length of the longest common prefix, in characters; halving keeps long texts quick.

    >>> common_length("the log had 3 lines", "the log had 40 lines")
    12
    """
    low, high = 0, min(len(first), len(second))
    if first[:1] != second[:1]:
        return 0
    while low < high:
        middle = (low + high + 1) // 2
        if first[low:middle] == second[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def shared_tokens(first: Message, second: Message, counter: PromptCounter) -> int:
    """Return how many leading tokens two differing messages share.

    The texts are compared character by character; the common part is counted, less its last token, which may reach
    across the cut. Differing roles, names or call ids share nothing.
    """
    a, b = text_key(first), text_key(second)
    if a[:3] != b[:3]:
        return 0
    length = common_length(a[3], b[3])
    if not length:
        return 0
    common = counter.tokenizer.count(a[3][:length]) - 1
    return max(0, min(common, counter.message(first), counter.message(second)))


@dataclass(slots=True, eq=False)
class Prompt:
    """The messages of one request as blocks, with running sums before each block and after the last."""

    blocks: tuple[PromptBlock, ...] = ()
    starts: list[int] = field(default_factory=lambda: [0])
    sums: list[int] = field(default_factory=lambda: [0])

    @property
    def length(self) -> int:
        """Number of messages."""
        return self.starts[-1]

    @property
    def tokens(self) -> int:
        """Tokens of all messages."""
        return self.sums[-1]

    def message(self, position: int) -> Message:
        """Return the message at ``position``."""
        block = bisect_right(self.starts, position) - 1
        return self.blocks[block].messages[position - self.starts[block]]

    def tokens_before(self, position: int, counter: PromptCounter) -> int:
        """Return the tokens of the first ``position`` messages."""
        if position == self.length:
            return self.tokens
        block = bisect_right(self.starts, position) - 1
        inside = self.blocks[block].messages[: position - self.starts[block]]
        return self.sums[block] + sum(counter.message(message) for message in inside)


_Item = TypeVar("_Item")


def same_items(first: tuple[_Item, ...], second: tuple[_Item, ...]) -> int:
    """Return how many leading items are the very same objects."""
    same = list(map(is_, first, second))
    try:
        return same.index(False)
    except ValueError:
        return len(same)


def extend(base: Prompt, same: int, blocks: tuple[PromptBlock, ...], counter: PromptCounter) -> Prompt:
    """Return the prompt of ``blocks``, whose first ``same`` blocks are those of ``base``."""
    starts, sums = base.starts[: same + 1], base.sums[: same + 1]
    start, total = starts[-1], sums[-1]
    for block in blocks[same:]:
        start += len(block.messages)
        total += block.tokens(counter)
        starts.append(start)
        sums.append(total)
    return Prompt(blocks, starts, sums)


def shared_messages(first: Prompt, second: Prompt, same: int, counter: PromptCounter) -> tuple[int, int]:
    """Return messages and tokens of the longest common run of whole messages, ``same`` blocks of which are known."""
    messages, tokens = first.starts[same], first.sums[same]
    a = b = same
    in_a = in_b = 0
    while a < len(first.blocks) and b < len(second.blocks):
        block_a, block_b = first.blocks[a], second.blocks[b]
        if in_a == len(block_a.messages):
            a, in_a = a + 1, 0
            continue
        if in_b == len(block_b.messages):
            b, in_b = b + 1, 0
            continue
        if in_a == in_b == 0:
            size = min(len(block_a.messages), len(block_b.messages))
            in_a = in_b = size if block_a is block_b else same_items(block_a.messages, block_b.messages)
            messages += in_a
            if in_a == len(block_a.messages):
                tokens += first.sums[a + 1] - first.sums[a]
            elif in_b == len(block_b.messages):
                tokens += second.sums[b + 1] - second.sums[b]
            else:
                tokens += sum(map(counter.message, block_a.messages[:in_a]))
            if in_a == size:
                continue
        x, y = block_a.messages[in_a], block_b.messages[in_b]
        if x is not y and x.wire != y.wire:
            break
        messages += 1
        tokens += counter.message(x)
        in_a, in_b = in_a + 1, in_b + 1
    return messages, tokens


@dataclass(slots=True, eq=False)
class Node:
    """The end of an edge: the messages ``parent.depth`` to ``depth`` of ``prompt``.

    ``used_s`` is the last use of the whole edge, brought up to date when a lineage leaves it (see `PrefixTree`).
    ``marks`` are positions on this edge at which a call asked the provider to keep the prefix: ``{position: (tokens,
    last use)}``, with the positions in order beside it.
    """

    parent: Node | None
    depth: int
    tokens: int
    prompt: Prompt
    used_s: float = NEVER
    children: dict[tuple[object, ...], Node] = field(default_factory=dict)
    keys: list[TextKey] = field(default_factory=list)
    ordered: list[Node] = field(default_factory=list)
    positions: list[int] = field(default_factory=list)
    marks: dict[int, tuple[int, float]] = field(default_factory=dict)

    def attach(self, child: Node) -> None:
        """Hang ``child`` below this node, or put it in the place of the one that starts with the same message."""
        first = child.prompt.message(self.depth)
        key = text_key(first)
        known = self.children.get(first.wire)
        self.children[first.wire] = child
        if known is not None:
            self.ordered[next(i for i in self._at(key) if self.ordered[i] is known)] = child
            return
        place = bisect_left(self.keys, key)
        self.keys.insert(place, key)
        self.ordered.insert(place, child)

    def _at(self, key: TextKey) -> range:
        return range(bisect_left(self.keys, key), bisect_right(self.keys, key))

    def nearest(self, message: Message, cutoff_s: float) -> list[Message]:
        """Return the first messages of the two living children nearest to ``message`` in text order.

        One of them shares the longest text with it: common prefixes only shorten with distance in a sorted list.
        """
        place = bisect_left(self.keys, text_key(message))
        below = (i for i in range(place - 1, -1, -1) if self.ordered[i].used_s >= cutoff_s)
        above = (i for i in range(place, len(self.ordered)) if self.ordered[i].used_s >= cutoff_s)
        found = (next(below, None), next(above, None))
        return [self.ordered[i].prompt.message(self.depth) for i in found if i is not None]

    def mark(self, position: int, tokens: int, now_s: float) -> None:
        """Note that the prefix up to ``position`` was kept, or used again, at ``now_s``."""
        if position not in self.marks:
            self.positions.insert(bisect_left(self.positions, position), position)
        else:
            now_s = max(now_s, self.marks[position][1])
        self.marks[position] = (tokens, now_s)

    def split(self, depth: int, tokens: int) -> Node:
        """Put a node at ``depth`` into this edge and return it; this node keeps the lower part."""
        upper = Node(self.parent, depth, tokens, self.prompt, self.used_s)
        cut = bisect_right(self.positions, depth)
        upper.positions, self.positions = self.positions[:cut], self.positions[cut:]
        upper.marks = {position: self.marks.pop(position) for position in upper.positions}
        if self.parent is not None:
            self.parent.attach(upper)
        self.parent = upper
        upper.attach(self)
        return upper


@dataclass(slots=True, eq=False)
class Lineage:
    """The last prompt of one sequence of calls (the agent's, the summariser's) and the node its path runs through."""

    prompt: Prompt
    node: Node
    now_s: float


@dataclass(slots=True, eq=False)
class Match:
    """How far a prompt follows the tree.

    ``node, depth, tokens`` is where it leaves the tree (on the edge that ends at ``node``), whatever has expired;
    ``alive_*`` the same among what a living call left; ``trail_*`` where it left its own lineage's last prompt.
    """

    prompt: Prompt
    node: Node
    depth: int
    tokens: int
    alive_node: Node
    alive_depth: int
    alive_tokens: int
    previous: Prompt | None
    trail_depth: int
    trail_tokens: int


class PrefixTree:
    """Every prompt sent so far, merged where they agree.

    A call is compared with the last prompt of its own lineage, by block identity, and enters the tree where it leaves
    that prompt: the cost is the number of blocks plus what changed. The last use of the current lineage's path is
    written into its nodes only when the path is left, or another lineage takes over (and never unless ``expires``).
    """

    def __init__(self, counter: PromptCounter, *, expires: bool) -> None:
        self.counter = counter
        self.expires = expires
        self.root = Node(None, 0, 0, Prompt())
        self.lineages: dict[str, Lineage] = {}
        self.current = ""

    def match(self, blocks: tuple[PromptBlock, ...], lineage: str, cutoff_s: float = NEVER) -> Match:
        """Return how far ``blocks`` follow the tree; what was last used before ``cutoff_s`` has expired."""
        if self.current != lineage:
            self._settle(self.current)
        last = self.lineages.get(lineage)
        if last is None:
            prompt = extend(self.root.prompt, 0, blocks, self.counter)
            depth, tokens, entry = 0, 0, self.root
        else:
            same = same_items(blocks, last.prompt.blocks)
            prompt = extend(last.prompt, same, blocks, self.counter)
            depth, tokens = shared_messages(prompt, last.prompt, same, self.counter)
            entry = last.node
            while entry.parent is not None and entry.parent.depth >= depth:
                entry.used_s = max(entry.used_s, last.now_s)
                entry = entry.parent
        trail_depth, trail_tokens = depth, tokens

        node = entry
        if last is not None and depth == last.prompt.length < entry.depth:
            depth, tokens = self._along(prompt, entry)  # another lineage has carried this edge on
        while depth == node.depth and node.children and depth < prompt.length:
            child = node.children.get(prompt.message(depth).wire)
            if child is None:
                break
            node = child
            depth, tokens = self._along(prompt, child)

        alive, alive_depth, alive_tokens = node, depth, tokens
        if cutoff_s > NEVER:
            path_lives = last is not None and last.now_s >= cutoff_s
            while alive.parent is not None and alive.used_s < cutoff_s and not (path_lives and alive is entry):
                alive = alive.parent
                alive_depth, alive_tokens = alive.depth, alive.tokens
        previous = None if last is None else last.prompt
        return Match(prompt, node, depth, tokens, alive, alive_depth, alive_tokens, previous, trail_depth, trail_tokens)

    def partial_tokens(self, match: Match, cutoff_s: float = NEVER) -> int:
        """Return the tokens shared inside the first message beyond the living prefix of ``match``."""
        if match.alive_depth == match.prompt.length:
            return 0
        message = match.prompt.message(match.alive_depth)
        node = match.alive_node
        if match.alive_depth < node.depth:
            others = [node.prompt.message(match.alive_depth)]
        else:
            others = node.nearest(message, cutoff_s)
        return max((shared_tokens(message, other, self.counter) for other in others), default=0)

    def insert(self, match: Match, lineage: str, now_s: float) -> Node:
        """Add the matched prompt as sent at ``now_s`` and return the node at which it ends."""
        node, prompt = match.node, match.prompt
        last = self.lineages.get(lineage)
        if last is not None and now_s < last.now_s:
            self._settle(lineage)
        if match.depth < node.depth:
            node = node.split(match.depth, match.tokens)
        if match.depth < prompt.length:
            if node.children or node.parent is None:
                leaf = Node(node, prompt.length, prompt.tokens, prompt)
                node.attach(leaf)
                node = leaf
            else:
                node.depth, node.tokens, node.prompt = prompt.length, prompt.tokens, prompt
        self.lineages[lineage] = Lineage(prompt, node, now_s)
        self.current = lineage
        return node

    def _along(self, prompt: Prompt, node: Node) -> tuple[int, int]:
        """Return how many messages and tokens of ``prompt`` run along the path to ``node``."""
        same = same_items(prompt.blocks, node.prompt.blocks)
        depth, tokens = shared_messages(prompt, node.prompt, same, self.counter)
        return (node.depth, node.tokens) if depth >= node.depth else (depth, tokens)

    def _settle(self, lineage: str) -> None:
        """Write the last use of a lineage into the nodes of its path."""
        last = self.lineages.get(lineage) if self.expires else None
        node = None if last is None else last.node
        while node is not None and last is not None:
            node.used_s = max(node.used_s, last.now_s)
            node = node.parent

"""What a set of visible messages says about laptops, merged: the only source of every value the shop stub utters."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from compaction_lab.conversation.messages import Message
from compaction_lab.scenarios.laptop_catalog.reading import (
    Fact,
    product_names,
    read,
)


@dataclass(slots=True)
class Seen:
    """What is visible about one product; of two statements about one attribute the later is kept."""

    values: dict[str, Fact] = field(default_factory=dict)
    suits: dict[str, Fact] = field(default_factory=dict)
    limits: dict[str, Fact] = field(default_factory=dict)
    summary: str = ""


@dataclass(slots=True)
class Knowledge:
    """Visible products in order of first mention, those talked about, and the last one recommended."""

    products: dict[str, Seen] = field(default_factory=dict)
    discussed: dict[str, None] = field(default_factory=dict)
    recommended: str = ""

    def about(self, name: str) -> Seen:
        """Return what is visible of a product; nothing is an empty `Seen`."""
        return self.products.get(name) or Seen()


@dataclass(frozen=True, slots=True)
class Attention:
    """The chance to notice a fact at place ``x`` of the prompt, 0 (start) to 1 (end): ``1 - depth * 4x(1 - x)``.

    The U shape is that of "Lost in the Middle" (Liu et al., TACL 2024): with 20 documents GPT-3.5-Turbo answers 76 % at
    the start, 63 % at the end and 54 % in the middle; ``depth=0.3`` is of that size. ``depth=0`` notices everything.
    """

    depth: float = 0.0

    def notices(self, fact: Fact, x: float, seed: int) -> bool:
        """Decide from the fact, its place and the seed alone."""
        if self.depth <= 0:
            return True
        draw = unit_draw(seed, fact.product, fact.attribute, fact.value, f"{x:.4f}")
        return draw < 1 - self.depth * 4 * x * (1 - x)


def unit_draw(*parts: object) -> float:
    """Return a number in [0, 1) from the sha256 of the parts."""
    digest = hashlib.sha256("\x1f".join(map(str, parts)).encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:8], "big") / 2**64


def gather(messages: Sequence[Message], attention: Attention, seed: int) -> Knowledge:
    """Return what the messages say; the system message is read like any other."""
    knowledge = Knowledge()
    alias = _aliases(messages)
    total = max(1, sum(len(m.text) for m in messages)) if attention.depth > 0 else 1
    before = 0
    for message in messages:
        text = message.text
        if message.role != "tool":
            for _, _, name in product_names(text):
                knowledge.discussed.setdefault(alias.get(name, name))
                knowledge.products.setdefault(alias.get(name, name), Seen())
        facts: Iterable[Fact] = read(text)
        if attention.depth > 0:
            facts = [f for f in facts if attention.notices(f, (before + f.at * len(text)) / total, seed)]
            before += len(text)
        for fact in facts:
            _note(knowledge, alias.get(fact.product, fact.product), fact)
    return knowledge


def _note(knowledge: Knowledge, name: str, fact: Fact) -> None:
    seen = knowledge.products.get(name)
    if seen is None:
        seen = knowledge.products[name] = Seen()
    match fact.attribute:
        case "suits":
            seen.suits[fact.value] = fact
        case "limits":
            seen.limits[fact.value] = fact
        case "summary":
            seen.summary = seen.summary or fact.value
        case "recommended":
            knowledge.recommended = name
        case _:
            known = seen.values.get(fact.attribute)
            if known is None or known.value != fact.value:
                seen.values[fact.attribute] = fact


def _aliases(messages: Sequence[Message]) -> dict[str, str]:
    """Map names read with a word too many in front ("Older Laptop Pro 14") to the shorter name that is also visible."""
    names: set[str] = set()
    for message in messages:
        names.update(_names_in(message))
    return {
        longer: shorter for longer in names for shorter in names if longer != shorter and longer.endswith(f" {shorter}")
    }


def _names_in(message: Message) -> frozenset[str]:
    found = message.memo.get("shop names")
    if not isinstance(found, frozenset):
        text = message.text
        found = frozenset(n for _, _, n in product_names(text)) | frozenset(f.product for f in read(text))
        message.memo["shop names"] = found
    return found

"""Scoring an answer against the catalog: required facts stated, wrong values, invented prices and stock.

``score = max(0, (stated - wrong) / required - 0.25 * invented)``: a wrong value of a named product cancels a stated
fact, and each invented price or stock statement costs a quarter of the turn, as the catalog has neither.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from compaction_lab.scenarios.base import RubricScore
from compaction_lab.scenarios.laptop_catalog.catalog import Catalog
from compaction_lab.scenarios.laptop_catalog.reading import (
    LIMITS,
    RECOMMENDED,
    SUITS,
    Fact,
    agree,
    product_names,
    read,
)
from compaction_lab.scenarios.laptop_catalog.vocabulary import ATTRIBUTES, TOPICS

INVENTION_PENALTY = 0.25

_NEGATED = re.compile(
    r"\bno\b|\bnot\b|n't\b|\bneither\b|\bnie\b|\bbrak|\bani\b|\bżadn|\bwithout\b|\bbez\b", re.IGNORECASE
)
_AMOUNT = r"\d+(?:[ .,]\d{2,3})*"
_PRICE = re.compile(
    rf"(?:[$€£]|\b(?:USD|EUR|GBP|PLN)\b)\s?{_AMOUNT}"
    rf"|{_AMOUNT}\s?(?:[$€£]|(?:USD|EUR|GBP|PLN|dollars?|euros?|zł|złotych|dolar\w+)(?!\w))",
    re.IGNORECASE,
)
_STOCK = re.compile(
    r"\b\d+ (?:units?|pieces?|items?|sztuk\w*|szt\.)"
    r"|\b(?:in|out of) stock\b|\bsold out\b|\bna stanie\b|\bw magazynie\b|\bdostępn\w+ od ręki\b|\bwyprzedan",
    re.IGNORECASE,
)
_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n")
_LIGHTER = re.compile(r"\blight(?:er|est)\b|\blżejsz|\bnajlżejsz|more mobile", re.IGNORECASE)
_LEADS = re.compile(r"^[\s\-*•\d.)]*")


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer, its facts, and the catalog it is held against."""

    text: str
    facts: tuple[Fact, ...]
    catalog: Catalog

    @property
    def named(self) -> frozenset[str]:
        """Products of the catalog that the answer names."""
        folded = " ".join(self.text.split()).casefold()
        return frozenset(name for name in self.catalog.names if name.casefold() in folded)

    def of(self, product: str) -> tuple[Fact, ...]:
        """Return the facts the answer states about a product."""
        wanted = self.catalog.product(product).name
        return tuple(f for f in self.facts if self.catalog.find(f.product) is not None and f.product == wanted)


@dataclass(frozen=True, slots=True)
class Finding:
    """What one requirement found: labels of what was stated, what is missing, what is wrong."""

    stated: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    wrong: tuple[str, ...] = ()


class Requirement(Protocol):
    """Something an answer has to say."""

    def __call__(self, answer: Answer) -> Finding:
        """Look for it."""
        ...


def _split(labels: dict[str, bool]) -> Finding:
    return Finding(tuple(k for k, v in labels.items() if v), tuple(k for k, v in labels.items() if not v))


def _enough(label: str, found: list[str], needed: int) -> Finding:
    stated = tuple(f"{label}: {item}" for item in found[:needed])
    return Finding(stated, tuple(f"{label}: {i + 1} of {needed}" for i in range(len(stated), needed)))


@dataclass(frozen=True, slots=True)
class Names:
    """Every product of the tuple is named."""

    products: tuple[str, ...]

    def __call__(self, answer: Answer) -> Finding:
        """Look for each name, ignoring case."""
        return _split({name: name in answer.named for name in self.products})


@dataclass(frozen=True, slots=True)
class Values:
    """The catalog's values of some attributes of one product, in any wording the reading knows."""

    product: str
    attributes: tuple[str, ...]

    def __call__(self, answer: Answer) -> Finding:
        """Compare the values stated of the product with the catalog's."""
        product = answer.catalog.product(self.product)
        stated = {(f.attribute, f.value) for f in answer.of(self.product)}
        return _split(
            {
                f"{product.name}: {ATTRIBUTES[attribute].en} {product.facts[attribute]}": any(
                    a == attribute and agree(attribute, value, product.value(attribute) or "") for a, value in stated
                )
                for attribute in self.attributes
            }
        )


@dataclass(frozen=True, slots=True)
class Topics:
    """At least ``needed`` of what the catalog says one product suits (or of its limits)."""

    product: str
    polarity: str
    needed: int

    def __call__(self, answer: Answer) -> Finding:
        """Count the catalog's topics that the answer states with the right polarity."""
        product = answer.catalog.product(self.product)
        gold = product.suits if self.polarity == SUITS else product.limits
        said = {f.value for f in answer.of(self.product) if f.attribute == self.polarity}
        found = [TOPICS[topic].en for topic in gold if topic in said]
        return _enough(f"{product.name} {self.polarity}", found, min(self.needed, len(gold)))


@dataclass(frozen=True, slots=True)
class Choice:
    """``how_many`` of the acceptable products are put forward, each with ``reasons`` true facts about it."""

    accepted: tuple[str, ...]
    reasons: int
    how_many: int = 1

    def __call__(self, answer: Answer) -> Finding:
        """Take the best supported of the acceptable products that the answer names."""
        supported = sorted(
            ((_true_facts(answer, name), name) for name in self.accepted if name in answer.named),
            key=lambda item: (-len(item[0]), item[1]),
        )
        stated: list[str] = []
        missing: list[str] = []
        for i in range(self.how_many):
            facts, name = supported[i] if i < len(supported) else ([], "")
            one = _enough(f"{name or 'choice'} because", facts, self.reasons)
            (stated if name else missing).append(f"choice: {name or ' or '.join(self.accepted)}")
            stated += one.stated
            missing += one.missing
        return Finding(tuple(stated), tuple(missing))


@dataclass(frozen=True, slots=True)
class Lighter:
    """The lighter of two products is called the lighter one."""

    first: str
    second: str

    def __call__(self, answer: Answer) -> Finding:
        """Read the product that a sentence about being lighter names first."""
        weights = {
            name: float(answer.catalog.product(name).value("weight_kg") or "nan") for name in (self.first, self.second)
        }
        right = min(weights, key=weights.__getitem__)
        label = f"lighter: {right}"
        for sentence in _SENTENCE.split(answer.text):
            cue = _LIGHTER.search(sentence)
            names = [name for _, _, name in product_names(sentence) if name in weights]
            if cue and names:
                if names[0] == right:
                    return Finding(stated=(label,))
                return Finding(missing=(label,), wrong=(f"lighter: {names[0]}",))
        return Finding(missing=(label,))


@dataclass(frozen=True, slots=True)
class Below:
    """The products with a screen below a limit are listed, with their size, and no other opens a line of the list."""

    limit_in: float

    def __call__(self, answer: Answer) -> Finding:
        """Look for names and sizes; a line that opens with another product without denying it is wrong."""
        sizes = {p.name: float(p.value("display_in") or "nan") for p in answer.catalog.products}
        matching = tuple(name for name, size in sizes.items() if size < self.limit_in)
        found = [Names(matching)(answer), *(Values(name, ("display_in",))(answer) for name in matching)]
        wrong = []
        for line in answer.text.splitlines():
            names = product_names(line)
            opens = names and names[0][0] <= len(_LEADS.match(line)[0])  # type: ignore[index]
            if opens and sizes.get(names[0][2], 0.0) >= self.limit_in and not _NEGATED.search(line):
                wrong.append(f"below {self.limit_in:g} inches: {names[0][2]}")
        return Finding(
            tuple(s for one in found for s in one.stated), tuple(m for one in found for m in one.missing), tuple(wrong)
        )


@dataclass(frozen=True, slots=True)
class Recommends:
    """Some product of the catalog is recommended in so many words."""

    def __call__(self, answer: Answer) -> Finding:
        """Look for a sentence that recommends a product."""
        found = any(f.attribute == RECOMMENDED and answer.catalog.find(f.product) for f in answer.facts)
        return _split({"a recommendation": found})


def _true_facts(answer: Answer, name: str) -> list[str]:
    product = answer.catalog.product(name)
    found: dict[str, None] = {}
    for fact in answer.of(name):
        if fact.attribute == SUITS and fact.value in product.suits:
            found[TOPICS[fact.value].en] = None
        elif fact.attribute == LIMITS and fact.value in product.limits:
            found[f"not {TOPICS[fact.value].en}"] = None
        elif fact.attribute in product.facts and agree(fact.attribute, fact.value, product.value(fact.attribute) or ""):
            found[f"{ATTRIBUTES[fact.attribute].en} {product.facts[fact.attribute]}"] = None
    return list(found)


def wrong_values(answer: Answer) -> tuple[str, ...]:
    """Return the values the answer states of a named product against the catalog, each once."""
    found: dict[str, None] = {}
    for fact in answer.facts:
        product = answer.catalog.find(fact.product)
        if product is None or fact.attribute not in ATTRIBUTES:
            continue
        gold = product.value(fact.attribute)
        if gold is None or not agree(fact.attribute, fact.value, gold):
            found[f"{product.name}: {ATTRIBUTES[fact.attribute].en} {fact.value}, not {gold or 'in the catalog'}"] = (
                None
            )
    return tuple(found)


def invented(text: str) -> tuple[str, ...]:
    """Return prices, and stock statements that are not denials.

    >>> invented("It costs 999 USD. The catalog does not say whether it is in stock.")
    ('999 USD',)
    """
    found = [match[0].strip() for match in _PRICE.finditer(text)]
    for sentence in _SENTENCE.split(text):
        if not _NEGATED.search(sentence):
            found += [match[0] for match in _STOCK.finditer(sentence)]
    return tuple(found)


Judge: TypeAlias = Callable[[str], RubricScore]


@dataclass(frozen=True, slots=True)
class Rubric:
    """The requirements of one turn; calling it scores an answer's text."""

    catalog: Catalog
    requirements: tuple[Requirement, ...]

    def __call__(self, text: str) -> RubricScore:
        """Score an answer from 0 to 1."""
        answer = Answer(text, read(text), self.catalog)
        findings = [requirement(answer) for requirement in self.requirements]
        stated = tuple(s for f in findings for s in f.stated)
        missing = tuple(m for f in findings for m in f.missing)
        wrong = (*wrong_values(answer), *(w for f in findings for w in f.wrong))
        inventions = invented(text)
        required = len(stated) + len(missing)
        share = (len(stated) - len(wrong)) / required if required else 1.0
        score = max(0.0, share - INVENTION_PENALTY * len(inventions))
        return RubricScore(score, required, len(stated), missing, inventions, wrong)


FULL = ("cpu", "ram_gb", "storage_gb", "display_in", "resolution", "battery_h", "weight_kg")


def rubrics(catalog: Catalog) -> tuple[Rubric, ...]:
    """Return the rubric of each of the 21 turns; every gold value is looked up in the catalog at scoring time."""
    names = catalog.names
    requirements: tuple[tuple[Requirement, ...], ...] = (
        (Names(names), *(Topics(name, SUITS, 1) for name in names)),
        (Choice(("Laptop Pro 14", "UltraLite 13", "BalanceBook 14"), reasons=3),),
        (Names(("Gaming Max 17",)), Values("Gaming Max 17", ("cpu", "ram_gb", "storage_gb", "resolution", "gpu_gb"))),
        tuple(
            requirement
            for name in ("Laptop Pro 14", "DevBook 15")
            for requirement in (Values(name, ("cpu", "ram_gb", "battery_h", "weight_kg")), Topics(name, SUITS, 2))
        ),
        (Values("Creator Studio 16", (*FULL, "gpu_gb")), Topics("Creator Studio 16", SUITS, 2)),
        (
            Topics("Campus Note 14", SUITS, 3),
            *(Values(name, ("cpu", "ram_gb", "storage_gb")) for name in ("Campus Note 14", "BalanceBook 14")),
        ),
        (
            Lighter("UltraLite 13", "Silent Lite 13"),
            *(Values(n, ("weight_kg",)) for n in ("UltraLite 13", "Silent Lite 13")),
        ),
        (Values("Gaming Max 17", ("cpu", "ram_gb", "display_in", "resolution", "weight_kg")),),
        (Below(14),),
        (
            Choice(
                ("Campus Note 14", "UltraLite 13", "BalanceBook 14", "Laptop Pro 14", "Silent Lite 13"),
                reasons=1,
                how_many=2,
            ),
        ),
        (Topics("Laptop Pro 14", SUITS, 3), Topics("Laptop Pro 14", LIMITS, 2)),
        (Values("Silent Lite 13", FULL), Topics("Silent Lite 13", SUITS, 2)),
        (Topics("DevBook 15", SUITS, 3), Topics("DevBook 15", LIMITS, 1)),
        (Choice(("Silent Lite 13", "UltraLite 13"), reasons=2),),
        (Choice(("Creator Studio 16",), reasons=3),),
        (Values("BalanceBook 14", FULL),),
        (Names(names),),
        (Values("Campus Note 14", FULL), Topics("Campus Note 14", SUITS, 2)),
        (Choice(("BalanceBook 14", "Laptop Pro 14", "DevBook 15", "Creator Studio 16"), reasons=3), Recommends()),
        tuple(Topics(name, SUITS, 2) for name in ("Gaming Max 17", "Creator Studio 16", "Laptop Pro 14")),
        (Names(names), Recommends()),
    )
    return tuple(Rubric(catalog, turn) for turn in requirements)

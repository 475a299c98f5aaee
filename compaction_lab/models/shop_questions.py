"""What a customer asks, understood by scripted wordings in English and Polish; never by the turn's number."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from compaction_lab.scenarios.laptop_catalog.reading import product_names
from compaction_lab.scenarios.laptop_catalog.vocabulary import ATTRIBUTES, Language

Kind = Literal["list", "names", "below", "recommend", "product", "recap", "other"]
Aspect = Literal["specification", "suits", "limits", "lighter"]


@dataclass(frozen=True, slots=True)
class Question:
    """A customer's question.

    Parameters
    ----------
    kind
        What is wanted: a list of models, names only, models below a screen size, a recommendation, something about
        named products, a recap of the conversation, or none of these.
    products
        Products named, in order.
    attributes
        Attributes asked for by name.
    aspects
        Open wishes: the specification, what a product suits, its limits, which of several is lighter.
    uses
        What a recommendation is for.
    how_many
        How many products a recommendation should hold.
    limit_in
        Screen limit in inches of ``below``.
    brief, money
        Whether a short answer is wanted; whether prices, stock or a budget were mentioned.
    """

    text: str
    language: Language
    kind: Kind
    products: tuple[str, ...] = ()
    attributes: tuple[str, ...] = ()
    aspects: frozenset[Aspect] = frozenset()
    uses: tuple[str, ...] = ()
    how_many: int = 1
    limit_in: float = 0.0
    brief: bool = False
    money: bool = False


def _words(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


_POLISH = _words(r"[ąćęłńóśźż]|\b(?:jaki|jaka|jakie|ile|czy|podaj|dla kogo|czym|który|co do|opisz|wymie)\b")
_RECAP = _words(r"summar\w+ (?:our|the|this) (?:whole )?conversation|podsumuj\w* .{0,20}rozmow")
_NAMES_ONLY = _words(r"names only|only the names|same nazwy|tylko nazwy")
_BELOW = _words(
    r"(?:smaller than|under|below|less than) (\d+(?:[.,]\d)?)[- ]?inch|(?:mniejsz\w* niż|poniżej) (\d+(?:[.,]\d)?) ?cal"
)
_LIST = _words(
    r"(?:list|show|name) (?:me )?(?:all|every)|what laptops do you have"
    r"|(?:wymie|wypis|pokaż)\w* (?:mi )?wszystkie|jakie macie laptopy"
)
_SPECIFICATION = _words(
    r"full (?:description|specification|product)|technical|specification|key parameters|compare|differ|details of the\b"
    r"|pełn\w+ (?:opis|dane|specyfik)|techniczn|specyfikac|parametr|porówna|różni"
)
_SUITS = _words(
    r"who is|who are|for whom|meant for|uses\b|advantages|strengths|workloads?|compare|full description"
    r"|dla kogo|zastosowa|zalet|do jakich|porówna|pełn\w+ opis"
)
_LIMITS = _words(r"\blimit|weakness|drawback|which does it not|compare|ogranicze|wad[yao]?\b|a do jakich nie|porówna")
_LIGHTER = _words(r"\blighter\b|\blżejsz")
_RECOMMEND = _words(
    r"recommend|suggest|\bpick\b|which (?:model|one|laptop)|something for|any of your"
    r"|poleca|zaproponuj|wybierz|wybierasz|który|która|jaki laptop|coś do"
)
_MANY = _words(r"\bset of\b|\bseveral\b|zestaw|kilka")
_SOME = _words(r"does any|are there any|czy któryś|czy jakiś")
_BRIEF = _words(r"\bbrief|\bshort\b|one-line|one-sentence|krótko|jedno\w* zdani|jednozdaniow")
_MONEY = _words(r"\bprice|\bcost|\bbudget|\bstock\b|\bcen[ayę]\b|koszt|budżet|dostępno|magazyn")
_USES: dict[str, re.Pattern[str]] = {
    "programming": _words(r"\bcode\b|programm|\bdevelop|programow|programist|\bkod\b"),
    "mobile": _words(r"on the move|mobil|travel|w drodze|podróż"),
    "gaming": _words(r"\bgam(?:es|ing)\b|\bgier\b|\bgry\b"),
    "creator": _words(r"\bphotos?\b|\bvideos?\b|creator|zdję|wideo|twórc"),
    "study": _words(r"\bstudy|universit|\bstudent|\bstudia|\bstudi"),
    "silence": _words(r"silen|quiet|\bcisz|\bcich"),
    "universal": _words(r"universal|all-round|uniwersaln"),
}


def language_of(text: str) -> Language:
    """Return the language of a question: Polish by its letters or question words, else English."""
    return "pl" if _POLISH.search(text) else "en"


@lru_cache(maxsize=2048)
def understand(text: str, known: tuple[str, ...] = ()) -> Question:
    """Return what a text asks; ``known`` are product names seen elsewhere, found here in any case.

    >>> understand("How much does the DevBook 15 weigh?").attributes
    ('weight_kg',)
    """
    language = language_of(text)
    products = _products(text, known)
    attributes = tuple(a.id for a in ATTRIBUTES.values() if a.asked.search(text))
    uses = tuple(use for use, pattern in _USES.items() if pattern.search(text))
    brief, money = bool(_BRIEF.search(text)), bool(_MONEY.search(text))
    kind: Kind
    aspects: set[Aspect] = set()
    how_many, limit_in = 1, 0.0
    below = _BELOW.search(text)
    if _RECAP.search(text):
        kind = "recap"
    elif _NAMES_ONLY.search(text):
        kind = "names"
    elif below and not products:
        kind = "below"
        limit_in = float((below[1] or below[2]).replace(",", "."))
    elif products:
        kind = "product"
        aspects |= {"specification"} if _SPECIFICATION.search(text) and not (brief and not attributes) else set()
        aspects |= {"suits"} if _SUITS.search(text) else set()
        aspects |= {"limits"} if _LIMITS.search(text) else set()
        aspects |= {"lighter"} if _LIGHTER.search(text) and len(products) > 1 else set()
        if attributes and aspects <= {"specification"} and not re.search(r"full|pełn", text, re.IGNORECASE):
            aspects = set()
        if not aspects and not attributes:
            aspects = {"specification", "suits"}
    elif _LIST.search(text):
        kind = "list"
    elif uses or _RECOMMEND.search(text):
        kind = "recommend"
        how_many = 3 if _MANY.search(text) else 2 if _SOME.search(text) else 1
        aspects |= {"specification"} if _SPECIFICATION.search(text) else set()
    else:
        kind = "other"
    if kind not in {"product", "recommend"}:
        attributes = ()
    return Question(
        text, language, kind, products, attributes, frozenset(aspects), uses, how_many, limit_in, brief, money
    )


def _products(text: str, known: tuple[str, ...]) -> tuple[str, ...]:
    found = {start: name for start, _, name in product_names(text)}
    folded = text.casefold()
    if len(folded) == len(text):
        for name in known:
            at = folded.find(name.casefold())
            if at >= 0:
                found[at] = name
    return tuple(dict.fromkeys(found[at] for at in sorted(found)))

"""Wording an answer from what is visible: first what was asked, then elaboration up to the length wanted."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from compaction_lab.models.shop_knowledge import Knowledge, Seen, unit_draw
from compaction_lab.models.shop_phrases import PHRASES, Phrases, shown
from compaction_lab.models.shop_questions import Question
from compaction_lab.scenarios.laptop_catalog.reading import Fact, product_names
from compaction_lab.scenarios.laptop_catalog.vocabulary import ATTRIBUTES, TOPICS, Language

_USE_TOPICS: dict[str, tuple[str, ...]] = {
    "programming": (
        "programming", "dotnet", "web", "backend", "frontend", "visual_studio", "containers", "microservices",
        "databases", "light_development", "large_solutions",
    ),
    "mobile": ("mobile_work", "travel", "portability", "long_battery", "commuting"),
    "gaming": ("gaming", "esports"),
    "creator": ("video_editing", "photo", "3d", "design", "rendering"),
    "study": ("schoolwork", "notes", "documents", "presentations", "intro_coding", "browsing", "portability"),
    "silence": ("silence",),
    "universal": ("balance", "working_day", "moderate_multitasking", "web", "dotnet", "travel", "mobile_work"),
}  # fmt: skip
_QUOTABLE_LENGTH = 90
"""A catalog line up to this many characters is quoted as it stands, as assistants do; longer ones are reworded."""


def ranked(knowledge: Knowledge, uses: tuple[str, ...]) -> list[str]:
    """Return products that visibly suit the uses: by uses covered, then topics less limits, then order of mention."""
    scores: dict[str, tuple[int, int]] = {}
    for name, seen in knowledge.products.items():
        covered = matched = 0
        for use in uses or ("universal",):
            topics = _USE_TOPICS[use]
            hits = sum(topic in seen.suits and topic not in seen.limits for topic in topics)
            covered += hits > 0
            matched += hits - 2 * sum(topic in seen.limits for topic in topics)
        if covered:
            scores[name] = (covered, matched)
    return sorted(scores, key=lambda name: (-scores[name][0], -scores[name][1]))


@dataclass(slots=True)
class Draft:
    """The lines of an answer in progress and what they have already said."""

    language: Language
    phrases: Phrases
    lines: list[str] = field(default_factory=list)
    said: set[tuple[str, str]] = field(default_factory=set)

    def bullets(self, name: str, seen: Seen, attributes: tuple[str, ...]) -> None:
        """Add a line for each visible attribute: the catalog's own line in English, a wording in Polish."""
        quoted: set[str] = set()
        for attribute in attributes:
            fact = seen.values.get(attribute)
            if fact is None:
                continue
            line = self._line(fact)
            if line not in quoted:
                quoted.add(line)
                self.lines.append(f"- {line}")
            self.said.add((name, attribute))

    def _line(self, fact: Fact) -> str:
        if (
            self.language == "en"
            and len(fact.quote) <= _QUOTABLE_LENGTH
            and re.match(r"[A-Z][\w ]{1,16}:|Weighs", fact.quote)
            and not product_names(fact.quote)
        ):
            return fact.quote
        value = shown(fact.attribute, fact.value, self.language)
        return self.phrases.bullets[fact.attribute].format(value=value)

    def topics(self, name: str, seen: Seen, *, suits: bool, limits: bool) -> None:
        """Add what the product suits and does not suit, as far as it is visible."""
        for wanted, found, phrase in (
            (suits, [t for t in seen.suits if t not in seen.limits], self.phrases.suits),
            (limits, list(seen.limits), self.phrases.limits),
        ):
            if wanted and found:
                self.lines.append(phrase.format(items=items(found, self.language)))
                self.said.update((name, topic) for topic in found)


def items(topics: list[str], language: Language) -> str:
    """Return topics as a comma-separated list in a language."""
    return ", ".join(TOPICS[t].pl if language == "pl" else TOPICS[t].en for t in topics)


def required(question: Question, knowledge: Knowledge) -> tuple[Draft, tuple[str, ...]]:
    """Return a draft that answers the question as far as visible facts allow, and the products it is about."""
    draft = Draft(question.language, PHRASES[question.language])
    if question.money:
        draft.lines.append(draft.phrases.money)
    match question.kind:
        case "product":
            return draft, _on_products(draft, question, knowledge)
        case "recommend":
            return draft, _recommendation(draft, question, knowledge)
        case "list":
            return draft, _list(draft, knowledge)
        case "names":
            names = tuple(knowledge.products)
            draft.lines.append(", ".join(names) if names else draft.phrases.nothing_seen)
            return draft, ()
        case "below":
            return draft, _below(draft, question, knowledge)
        case "recap":
            return draft, _recap(draft, knowledge)
        case _:
            draft.lines.append(draft.phrases.nothing_seen)
            return draft, ()


def _on_products(draft: Draft, question: Question, knowledge: Knowledge) -> tuple[str, ...]:
    names = question.products
    if question.aspects:
        draft.lines.append(draft.phrases.compare_lead if len(names) > 1 else draft.phrases.product_lead)
    if "lighter" in question.aspects:
        _compare_weight(draft, names, knowledge)
    for name in names:
        seen = knowledge.about(name)
        if not seen.values and not seen.suits and not seen.limits:
            draft.lines.append(draft.phrases.unknown_product.format(name=name))
            continue
        draft.lines.append(f"**{name}**")
        attributes = tuple(ATTRIBUTES) if "specification" in question.aspects else question.attributes
        draft.bullets(name, seen, attributes)
        for attribute in question.attributes:
            if attribute not in seen.values and attribute != "refresh_hz":
                draft.lines.append(draft.phrases.unknown[attribute].format(name=name))
        draft.topics(name, seen, suits="suits" in question.aspects, limits="limits" in question.aspects)
    return names


def _compare_weight(draft: Draft, names: tuple[str, ...], knowledge: Knowledge) -> None:
    weights = {n: float(f.value) for n in names if (f := knowledge.about(n).values.get("weight_kg"))}
    if len(weights) == len(names):
        lightest = min(weights, key=weights.__getitem__)
        tied = len(set(weights.values())) == 1
        draft.lines.append(draft.phrases.same_weight if tied else draft.phrases.lighter.format(name=lightest))


def _recommendation(draft: Draft, question: Question, knowledge: Knowledge) -> tuple[str, ...]:
    chosen = tuple(ranked(knowledge, question.uses)[: question.how_many])
    if not chosen:
        draft.lines.append(draft.phrases.nothing_seen)
    wanted = {topic for use in question.uses or ("universal",) for topic in _USE_TOPICS[use]}
    for i, name in enumerate(chosen):
        seen = knowledge.about(name)
        suits = [t for t in seen.suits if t not in seen.limits]
        best = [t for t in suits if t in wanted]
        rest = [t for t in suits if t not in wanted] if question.how_many == 1 else []
        lead = draft.phrases.also if i else draft.phrases.recommend
        reason = draft.phrases.reasons.format(name=name, items=items(best + rest, draft.language))
        draft.lines.append(f"{lead.format(name=name)} {reason}")
        draft.said.update((name, topic) for topic in best + rest)
        if question.how_many == 1:
            draft.bullets(name, seen, tuple(ATTRIBUTES))
        elif not question.brief:
            draft.bullets(name, seen, ("weight_kg", "battery_h"))
    return chosen


def _list(draft: Draft, knowledge: Knowledge) -> tuple[str, ...]:
    if not knowledge.products:
        draft.lines.append(draft.phrases.nothing_seen)
        return ()
    draft.lines.append(draft.phrases.list_lead)
    for name, seen in knowledge.products.items():
        suits = [t for t in seen.suits if t not in seen.limits]
        about = seen.summary if draft.language == "en" and seen.summary else items(suits, draft.language)
        draft.lines.append(f"- {name}: {about}" if about else f"- {name}")
        draft.said.update((name, topic) for topic in suits)
    return ()


def _below(draft: Draft, question: Question, knowledge: Knowledge) -> tuple[str, ...]:
    limit = shown("display_in", f"{question.limit_in:g}", draft.language)
    sizes = {name: seen.values.get("display_in") for name, seen in knowledge.products.items()}
    matching = tuple(n for n, f in sizes.items() if f is not None and float(f.value) < question.limit_in)
    unsure = tuple(n for n, f in sizes.items() if f is None and named_size(n) < question.limit_in)
    if not knowledge.products:
        draft.lines.append(draft.phrases.nothing_seen)
    elif not matching and not unsure:
        draft.lines.append(draft.phrases.below_none.format(value=limit))
    if matching:
        draft.lines.append(draft.phrases.below_lead.format(value=limit))
    for name in matching:
        size = shown("display_in", knowledge.products[name].values["display_in"].value, draft.language)
        draft.lines.append(f"- {name}: {draft.phrases.bullets['display_in'].format(value=size)}")
        draft.said.add((name, "display_in"))
    draft.lines += [draft.phrases.unknown["display_in"].format(name=name) for name in unsure]
    return matching


def named_size(name: str) -> float:
    """Return the number a product's name ends in, a hint at its screen size; infinity without one."""
    match = re.search(r"(\d+)$", name)
    return float(match[1]) if match else float("inf")


def _recap(draft: Draft, knowledge: Knowledge) -> tuple[str, ...]:
    names = tuple(n for n in knowledge.discussed if n in knowledge.products)
    if not names:
        draft.lines.append(draft.phrases.recap_empty)
        return ()
    draft.lines.append(draft.phrases.recap.format(names=", ".join(names)))
    final = knowledge.recommended or next(iter(ranked(knowledge, ())), "")
    draft.lines.append(draft.phrases.final.format(name=final) if final else draft.phrases.no_final)
    return names


def compose(
    question: Question,
    knowledge: Knowledge,
    *,
    target_tokens: float,
    limit_tokens: int | None,
    count: Callable[[str], int],
    seed: int,
) -> str:
    """Return the answer's text: everything required, elaborated until it has about ``target_tokens`` tokens.

    What was asked is never cut for the target, only for ``limit_tokens``, and then at a line's end.
    """
    draft, names = required(question, knowledge)
    text = "\n".join(draft.lines)
    used = count(text)
    ceiling = target_tokens if limit_tokens is None else min(target_tokens, limit_tokens)
    more: list[str] = []
    for sentence in _elaboration(draft, question, names, knowledge, seed):
        cost = count(" " + sentence)
        if used + cost / 2 > ceiling or (limit_tokens is not None and used + cost > limit_tokens):
            break
        more.append(sentence)
        used += cost
    answer = "\n\n".join(filter(None, (text, _paragraphs(more))))
    return answer if limit_tokens is None else _within(answer, limit_tokens, count)


def _elaboration(
    draft: Draft, question: Question, names: tuple[str, ...], knowledge: Knowledge, seed: int
) -> Iterator[str]:
    """Yield visible facts not stated yet, then talk without values in an order drawn from the question's text."""
    for name in names:
        seen = knowledge.about(name)
        for attribute in ATTRIBUTES:
            if attribute in seen.values and (name, attribute) not in draft.said:
                value = shown(attribute, seen.values[attribute].value, draft.language)
                yield draft.phrases.sentences[attribute].format(name=name, value=value)
        suits = [t for t in seen.suits if t not in seen.limits and (name, t) not in draft.said]
        if suits:
            yield draft.phrases.reasons.format(name=name, items=items(suits, draft.language))
    yield from sorted(draft.phrases.talk, key=lambda line: unit_draw(seed, question.text, line))
    yield draft.phrases.closing


def _paragraphs(sentences: list[str], size: int = 4) -> str:
    return "\n\n".join(" ".join(sentences[i : i + size]) for i in range(0, len(sentences), size))


def _within(text: str, limit_tokens: int, count: Callable[[str], int]) -> str:
    lines = text.split("\n")
    while len(lines) > 1 and count("\n".join(lines)) > limit_tokens:
        lines.pop()
    words = "\n".join(lines).split(" ")
    while len(words) > 1 and count(" ".join(words)) > limit_tokens:
        words.pop()
    return " ".join(words)

"""Reading facts about laptops out of text: tool results, answers in prose or tables, summaries, English or Polish.

A fact belongs to the product named last before it: in its clause, else in its sentence, line or heading; a rule
(``---``) ends what a heading covers.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from compaction_lab.conversation.messages import JSON
from compaction_lab.scenarios.laptop_catalog.vocabulary import TOPICS

SUITS, LIMITS = "suits", "limits"
SUMMARY, RECOMMENDED = "summary", "recommended"

_NAME = re.compile(r"(?<![\w.-])(?:[A-Z][A-Za-z]+ ){1,3}\d{2}(?![\w.,]*\d)(?!\w)")
_NOT_A_NAME = frozenset(
    {
        "A", "An", "The", "And", "For", "Or", "Of", "In", "If", "Is", "Choose", "Compare", "Consider", "Show", "Take",
        "Pick", "With", "While", "Both", "Against", "About", "Recommend", "I", "Czy", "Dla", "Do", "Lub", "Oraz",
        "Podaj", "Polecam", "Pokaż", "Porównaj", "Wybierz", "Wybieram", "Albo", "Opis", "Model",
    }
)  # fmt: skip

_NEGATIVE = re.compile(
    r"\bnot\b|n't\b|\bless suit|\blimit|\bpoor (?:match|fit|choice)|\bcannot\b|\bis short\b|\bavoid|\bout of reach\b"
    r"|\bweak|\bnie\b|\bograniczeni|\bograniczon|\bsłab|\bunika|\bsłabe",
    re.IGNORECASE,
)
_RECOMMENDS = re.compile(
    r"\brecommend|\bmy pick\b|\bI would (?:choose|pick)\b|\bpoleca|\brekomend|\bwybiera", re.IGNORECASE
)
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[^\sa-ząćęłńóśźż])")
_LINE_END = re.compile(r"\n|\\n")
_RULE = re.compile(r"^\s*(?:-{3,}|\*{3,}|_{3,}|—+)\s*$")
_LABELLED = re.compile(
    r"^\W*(?:processor|cpu|procesor|memory|ram|pamięć|storage|ssd|drive|dysk|display|screen|ekran|graphics|battery"
    r"|bateria|weight|weighs|waga)\b",
    re.IGNORECASE,
)
_LABELLED_CPU = re.compile(r"^\W*(?:processor|cpu|procesor)\W*:\W*(.{3,60}?)[.;]?$", re.IGNORECASE)

_CPU = re.compile(
    r"\bRyzen (?P<ryzen>\d)"
    r"|\bi(?P<intel>[3579])\b(?:[^.;\n\d]{0,12}(?P<gen>\d{2})(?:th|\.)[ -]?gen)?"
    r"|\b(?P<cores>\d+)[- ](?:cores?\b|rdzeni)"
    r"|(?P<low>\blow-power\b|\benergooszczędn)(?=[^.;\n]{0,30}(?:chip|processor|układ|procesor|CPU))"
    r"|(?:chip|processor|układ|procesor|CPU)[^.;\n]{0,30}(?P<low2>\blow-power\b|\benergooszczędn)",
    re.IGNORECASE,
)
_PATTERNS: dict[str, re.Pattern[str]] = {
    "ram_gb": re.compile(
        r"(?<![\d.,])(\d+) ?GB(?=[^.;,|\n\d]{0,14}(?:\bRAM\b|\bmemory\b(?! card)|\bpamięci\b(?! graf)))"
        r"(?![^.;,|\n]{0,12}VRAM)"
        r"|(?:\bRAM\b|\bmemory\b|\bpamięć(?: RAM)?)\s*(?:\(RAM\))?\s*(?::|of|is|to|wynosi|–|-)\W{0,4}"
        r"(\d+) ?GB(?! ?VRAM)",
        re.IGNORECASE,
    ),
    "storage_gb": re.compile(
        r"(?<![\d.,])(\d+ ?[GT]B)(?=[^.;,|\n\d]{0,12}(?:\bSSD\b|\bstorage\b|\bdrive\b|\bdysk|\bdisk))"
        r"|(?:\bSSD\b|\bstorage\b|\bdrive\b|\bdysk\w*)(?: SSD)?\s*(?::|of|is|to|–|-)\W{0,4}(?:SSD )?(\d+ ?[GT]B)",
        re.IGNORECASE,
    ),
    "display_in": re.compile(r"(?<![\d.,x×])(\d{2}(?:[.,]\d)?)(?:[- ]?inch|[- ]?cal|-calow|″|\"|'')", re.IGNORECASE),
    "resolution": re.compile(r"(\d{4}\s?[x×]\s?\d{4})", re.IGNORECASE),
    "refresh_hz": re.compile(r"(\d{2,3})\s?Hz", re.IGNORECASE),
    "gpu_gb": re.compile(
        r"(?<![\d.,])(\d+) ?GB(?: of)? ?(?:VRAM\b|graphics memory\b|video memory\b|pamięci graficznej)"
        r"|\bVRAM\W{1,4}(\d+) ?GB",
        re.IGNORECASE,
    ),
    "battery_h": re.compile(r"(?<![\d.,])(\d+)[ -]?(?:hours?|hrs?|h|godz\w*)\b", re.IGNORECASE),
    "weight_kg": re.compile(
        r"(?<![\d.,])(?<!\bby )(?<!\bo )(\d+(?:[.,]\d+)?)\s?kg\b"
        r"(?! (?:lighter|less|heavier|more|lżej|mniej|więcej|cięż))",
        re.IGNORECASE,
    ),
}


@dataclass(frozen=True, slots=True)
class Fact:
    """One statement about one product.

    Parameters
    ----------
    product
        The product's name as written.
    attribute
        An attribute of the vocabulary, or ``suits``, ``limits``, ``summary``, ``recommended``.
    value
        Canonical value (:func:`canonical`), a topic, the summary's text, or ``yes``.
    quote
        The clause the fact was read from, without its bullet.
    at
        Where the fact stands in the text, 0 to 1.
    """

    product: str
    attribute: str
    value: str
    quote: str
    at: float


def canonical(attribute: str, shown: str) -> str:
    """Return a value in the form in which two wordings of it are equal.

    >>> canonical("weight_kg", "1,30"), canonical("storage_gb", "1 TB"), canonical("cpu", "Intel Core i7 (13th Gen)")
    ('1.3', '1024', 'i7 13')
    """
    shown = shown.strip()
    if attribute in {"weight_kg", "display_in"}:
        return f"{float(shown.replace(',', '.')):g}"
    if attribute == "storage_gb":
        number, unit = re.fullmatch(r"(\d+) ?([GT]B)?", shown, re.IGNORECASE).groups()  # type: ignore[union-attr]
        size_gb = int(number) * (1024 if (unit or "").upper() == "TB" else 1)
        return str(round(size_gb / 1000) * 1024 if size_gb >= 1000 else size_gb)  # noqa: PLR2004 - 1 TB, either way
    if attribute == "resolution":
        return re.sub(r"\s?[x×]\s?", "x", shown.lower())
    if attribute == "cpu":
        return _canonical_cpu(shown)
    return shown.lstrip("0") or "0"


def _canonical_cpu(shown: str) -> str:
    found = _CPU.search(shown)
    if found is None:
        return shown.casefold()
    if found["ryzen"]:
        return f"ryzen {found['ryzen']}"
    if found["intel"]:
        return f"i{found['intel']} {found['gen'] or ''}".strip()
    return f"{found['cores']}-core" if found["cores"] else "low-power"


def agree(attribute: str, first: str, second: str) -> bool:
    """Whether two canonical values do not contradict each other: a screen may be rounded, a generation left out."""
    if first == second:
        return True
    if attribute == "display_in":
        return first.split(".", maxsplit=1)[0] == second.split(".", maxsplit=1)[0] and ("." in first) != ("." in second)
    if attribute == "cpu":
        return first.startswith(second + " ") or second.startswith(first + " ")
    return False


def product_names(text: str) -> tuple[tuple[int, int, str], ...]:
    """Return ``(start, end, name)`` of what looks like a product name: capitalised words and a two-digit number."""
    found = []
    for match in _NAME.finditer(text):
        words = match[0].split()
        start = match.start()
        while len(words) > 1 and words[0] in _NOT_A_NAME:
            start += len(words.pop(0)) + 1
        if len(words) > 1:
            found.append((start, match.end(), " ".join(words)))
    return tuple(found)


@lru_cache(maxsize=8192)
def read(text: str) -> tuple[Fact, ...]:
    """Return the facts a text states, in order; memoised, as the same messages are read at every call.

    >>> [(f.product, f.attribute, f.value) for f in read("The DevBook 15 weighs 2,1 kg.")]
    [('DevBook 15', 'weight_kg', '2.1')]
    """
    stripped = text.lstrip()
    if stripped[:1] in {"{", "["}:
        try:
            document = json.loads(stripped)
        except ValueError:
            return tuple(_read_lines(text, None, 0.0, 1.0))
        records = [record for record in _records(document) if isinstance(record.get("name"), str)]
        return tuple(
            fact
            for i, record in enumerate(records)
            for fact in _read_record(record, i / len(records), 1 / len(records))
        )
    return tuple(_read_lines(text, None, 0.0, 1.0))


def _records(document: JSON) -> Iterator[dict[str, JSON]]:
    if isinstance(document, dict):
        yield document
    elif isinstance(document, list):
        for item in document:
            yield from _records(item)


def _read_record(record: dict[str, JSON], start: float, share: float) -> Iterator[Fact]:
    name = str(record["name"])
    for key, value in record.items():
        if key == "name" or not isinstance(value, str):
            continue
        if key == "shortSummary":
            yield Fact(name, SUMMARY, value, value, start)
        yield from _read_lines(value, name, start, share)


def _read_lines(text: str, current: str | None, start: float, share: float) -> Iterator[Fact]:
    header: list[str] = []
    owner = current
    at = 0
    for line in _LINE_END.split(text):
        where = start + share * at / max(1, len(text))
        at += len(line) + 1
        if line.count("|") > 1:
            cells = [cell.strip(" *") for cell in line.strip().strip("|").split("|")]
            if not header:
                header = cells
            else:
                yield from _read_row(header, cells, where)
            continue
        header = []
        if _RULE.match(line):
            owner = current
            continue
        names = product_names(line) if current is None else ()
        if len(names) == 1:
            yield from _described(names[0][2], line[names[0][1] :], where)
        for sentence in _SENTENCE_END.split(line):
            found = product_names(sentence) if current is None else ()
            if not found:
                yield from _read_clause(owner, sentence, where)
                continue
            if _RECOMMENDS.search(sentence) and not _NEGATIVE.search(sentence):
                yield Fact(found[0][2], RECOMMENDED, "yes", sentence.strip(), where)
            cuts = [0, *(name[0] for name in found[1:]), len(sentence)]
            for (_, _, name), left, right in zip(found, cuts, cuts[1:], strict=False):
                yield from _read_clause(name, sentence[left:right], where)
            owner = found[0][2] if len({name for _, _, name in found}) == 1 else None


def _described(name: str, rest: str, where: float) -> Iterator[Fact]:
    match = re.match(r"\W{0,4}[:–—-]\W{0,4}(\w.{19,})$", rest.strip())
    if match and not any(pattern.search(rest) for pattern in (_PATTERNS["weight_kg"], _PATTERNS["ram_gb"])):
        yield Fact(name, SUMMARY, match[1], match[1], where)


def _read_row(header: list[str], cells: list[str], where: float) -> Iterator[Fact]:
    row_names = product_names(cells[0])
    for label, cell in zip(header[1:], cells[1:], strict=False):
        if row_names:
            yield from _read_clause(row_names[0][2], f"{label}: {cell}", where)
        elif column := product_names(label):
            yield from _read_clause(column[0][2], f"{cells[0]}: {cell}", where)


def _read_clause(product: str | None, clause: str, where: float) -> Iterator[Fact]:
    if product is None:
        return
    quote = clause.strip(" \t-*•")
    bare = clause
    for start, end, _ in reversed(product_names(clause)):
        bare = bare[:start] + " " * (end - start) + bare[end:]
    bare = bare.replace("**", "")
    labelled_cpu = _LABELLED_CPU.match(bare.strip())
    if labelled_cpu:
        yield Fact(product, "cpu", canonical("cpu", labelled_cpu[1]), quote, where)
    elif found := _CPU.search(bare):
        yield Fact(product, "cpu", canonical("cpu", found[0]), quote, where)
    if any(c.isdigit() for c in bare):
        for attribute, pattern in _PATTERNS.items():
            for match in pattern.finditer(bare):
                shown = next(group for group in match.groups() if group)
                yield Fact(product, attribute, canonical(attribute, shown), quote, where)
    if not _LABELLED.match(bare):
        attribute = LIMITS if _NEGATIVE.search(bare) else SUITS
        for topic in TOPICS.values():
            if topic.found.search(bare):
                yield Fact(product, attribute, topic.id, quote, where)

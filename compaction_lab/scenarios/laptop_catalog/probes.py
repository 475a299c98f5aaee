"""Fifty questions with tools off, one fact each: what the conversation still knows of every product's attributes."""

from __future__ import annotations

from compaction_lab.conversation.transcript import Probe
from compaction_lab.errors import ConfigurationError
from compaction_lab.scenarios.laptop_catalog.catalog import PROBED, Catalog, Product
from compaction_lab.scenarios.laptop_catalog.vocabulary import Language

ASKED_AFTER = (11, 21)
"""The turn after the first summary of the article's agents has been read, and the end."""

_QUESTIONS: dict[Language, dict[str, str]] = {
    "en": {
        "cpu": "Which processor does the {name} have?",
        "ram_gb": "How much RAM does the {name} have?",
        "storage_gb": "How large is the SSD storage of the {name}?",
        "resolution": "What is the resolution of the {name}?",
        "battery_h": "How many hours does the battery of the {name} last at most?",
        "weight_kg": "How much does the {name} weigh?",
        "gpu_gb": "How much graphics memory does the {name} have?",
    },
    "pl": {
        "cpu": "Jaki procesor ma {name}?",
        "ram_gb": "Ile pamięci RAM ma {name}?",
        "storage_gb": "Jak duży dysk SSD ma {name}?",
        "resolution": "Jaką rozdzielczość ma {name}?",
        "battery_h": "Ile godzin najdłużej działa bateria w {name}?",
        "weight_kg": "Ile waży {name}?",
        "gpu_gb": "Ile pamięci karty graficznej ma {name}?",
    },
}


def probes(catalog: Catalog, language: Language) -> dict[int, tuple[Probe, ...]]:
    """Return the probes by the turn after which they are asked.

    Evidence is the shortest span of the product's description that holds the fact and stands in no other description
    (``Battery: up to 12 hours``). It therefore survives where the catalog's own line does: in the tool's result, or
    quoted by an answer or a summary. A restated value (``12 godzin``) answers the probe but is no evidence.
    """
    asked = tuple(
        Probe(
            id=f"{product.name.lower().replace(' ', '-')}.{attribute}",
            kind="fact",
            question=_QUESTIONS[language][attribute].format(name=product.name),
            gold=gold(product, attribute),
            evidence=(product.evidence(attribute),),
        )
        for product in catalog.products
        for attribute in PROBED
        if attribute in product.facts
    )
    return dict.fromkeys(ASKED_AFTER, asked)


def gold(product: Product, attribute: str) -> tuple[str, ...]:
    """Return the accepted wordings of a fact in both languages, the catalog's own first.

    Each is matched as whole words, so a bare ``1 kg`` is left out: it would also stand in ``1.1 kg``.
    """
    value = product.value(attribute)
    if value is None:
        raise ConfigurationError(f"laptop catalog: {product.name} states no {attribute}; ask only what it states")
    match attribute:
        case "cpu":
            return tuple(dict.fromkeys((product.facts[attribute], *_cpu_wordings(value))))
        case "storage_gb":
            shown = product.facts[attribute]
            return tuple(dict.fromkeys((shown, shown.replace(" ", ""), f"{value} GB")))
        case "ram_gb" | "gpu_gb":
            return (f"{value} GB", f"{value}GB")
        case "resolution":
            wide, high = value.split("x")
            return (value, f"{wide} x {high}", f"{wide}×{high}", f"{wide} × {high}")
        case "battery_h":
            return (f"{value} hours", f"{value} h", f"{value}h", f"{value} godzin", f"{value} godz", f"{value} hrs")
        case _:
            shown = f"{float(value):.1f}" if float(value).is_integer() else value
            comma = shown.replace(".", ",")
            return tuple(dict.fromkeys((f"{shown} kg", f"{comma} kg", f"{shown}kg")))


def _cpu_wordings(value: str) -> tuple[str, ...]:
    if value.startswith("ryzen"):
        return (value.replace("ryzen", "Ryzen"),)
    if value.endswith("-core"):
        cores = value.removesuffix("-core")
        return (value, f"{cores} core", f"{cores} cores", f"{cores}-rdzeniowy", f"{cores} rdzeni")
    if value == "low-power":
        return ("low-power", "low power", "energooszczędny")
    model, _, generation = value.partition(" ")
    if generation:
        return tuple(
            f"{model}{gap}{generation}{end}" for gap in (" (", " ", ", ") for end in ("th Gen", ". gen", "th gen")
        )
    return (value,)

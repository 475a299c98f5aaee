"""The laptop shop: eight products, two real tools, 21 fixed user turns in English and Polish, rubrics and probes.

The conversation follows the published 21-turn comparison of context management in a Semantic Kernel agent; catalog and
turns are worded anew around the same facts. No product has a price or a stock count, though the system prompt speaks of
both, so that inventing them is tempting and every such figure is wrong.
"""

from __future__ import annotations

import json
from importlib import resources

from compaction_lab.conversation.messages import system
from compaction_lab.errors import ConfigurationError
from compaction_lab.scenarios.base import Scenario, Turn
from compaction_lab.scenarios.laptop_catalog.catalog import Catalog, load_catalog
from compaction_lab.scenarios.laptop_catalog.probes import probes
from compaction_lab.scenarios.laptop_catalog.rubric import rubrics
from compaction_lab.scenarios.laptop_catalog.tools import tools
from compaction_lab.scenarios.laptop_catalog.vocabulary import Language

LANGUAGES: tuple[Language, ...] = ("en", "pl")

__all__ = ["LANGUAGES", "Catalog", "load_catalog", "scenario"]


def scenario(language: str, catalog: Catalog | None = None) -> Scenario:
    """Return the shop conversation in one language, over the shipped catalog or another of the same product names.

    Raises
    ------
    ConfigurationError
        For a language there are no turns in.
    """
    known = next((code for code in LANGUAGES if code == language), None)
    if known is None:
        raise ConfigurationError(f"laptop_catalog: no turns in {language!r}; expected one of {', '.join(LANGUAGES)}")
    catalog = catalog or load_catalog()
    words = json.loads(resources.files(__package__).joinpath("data/turns.json").read_text(encoding="utf-8"))
    return Scenario(
        id=f"laptop_catalog-{known}",
        language=known,
        opening=(system(words["system"]),),
        tools=tools(catalog),
        turns=tuple(Turn(text, judge) for text, judge in zip(words[known], rubrics(catalog), strict=True)),
        probes=probes(catalog, known),
    )

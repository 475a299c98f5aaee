"""Live scenarios by the names that dataset configurations use."""

from __future__ import annotations

from collections.abc import Mapping

from compaction_lab.conversation.messages import JSON
from compaction_lab.errors import ConfigurationError
from compaction_lab.scenarios.base import Scenario

SEMANTICS = 1
"""Version of the scenarios' texts, rubrics and probes, part of every key."""


def scenarios(dataset: Mapping[str, JSON]) -> list[Scenario]:
    """Return the scenarios of a dataset node, one a transcript.

    Raises
    ------
    ConfigurationError
        There is no such scenario, or not in a language asked for.
    """
    name = dataset.get("name")
    if name != "laptop_catalog":
        msg = f"dataset.name={name!r}: no such scenario; there is laptop_catalog"
        raise ConfigurationError(msg)
    from compaction_lab.scenarios.laptop_catalog import LANGUAGES, scenario

    languages = dataset.get("languages")
    if not isinstance(languages, list) or not languages or any(language not in LANGUAGES for language in languages):
        msg = f"dataset.languages={languages!r}; expected a list of {', '.join(LANGUAGES)}"
        raise ConfigurationError(msg)
    return [scenario(language) for language in dict.fromkeys(map(str, languages))]

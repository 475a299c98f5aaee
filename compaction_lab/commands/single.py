"""A configuration without a grid, for verbs that do one thing once: overrides of some groups, one value each."""

from __future__ import annotations

import argparse
import copy
from collections.abc import Collection
from typing import TYPE_CHECKING, cast

from compaction_lab.errors import ConfigurationError

if TYPE_CHECKING:
    from compaction_lab.sweep.nodes import Node


def single_configuration(args: argparse.Namespace, groups: Collection[str], takes: str) -> tuple[Node, set[str]]:
    """Return the composed configuration, and the keys that overrides set.

    Parameters
    ----------
    args
        With ``overrides`` and ``config_dir``.
    groups
        The groups and keys that the verb takes.
    takes
        The same in words, for the error.

    Raises
    ------
    ConfigurationError
        An override is of another group, has several values or no sense.
    """
    from compaction_lab.configuration import configuration_files
    from compaction_lab.sweep.composer import composer as shared_composer
    from compaction_lab.sweep.nodes import assign
    from compaction_lab.sweep.overrides import OverrideReader

    files = configuration_files(args.config_dir)
    given = OverrideReader(files).read_all(args.overrides)
    for override in given:
        if override.group not in groups or len(override.values) > 1:
            raise ConfigurationError(f"{override.text!r}: {takes}, one value each")
    composer = shared_composer(files)
    chosen = {o.key: cast("str | None", o.values[0]) for o in given if o.action == "choose"}
    config = copy.deepcopy(composer(chosen))
    for override in given:
        if override.action != "choose":
            assign(config, override.key, override.values[0], override.text)
    if config.get("strategy") is not None:
        config["strategy"] = composer.expand_presets(config["strategy"])
    return config, {override.key for override in given}

"""Composes the configuration files for one choice of groups, once per distinct choice, into plain values."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from functools import lru_cache
from typing import cast

from compaction_lab.configuration import OVERLAYS, ConfigurationFiles, unescaped
from compaction_lab.conversation.messages import JSON
from compaction_lab.errors import ConfigurationError
from compaction_lab.sweep.nodes import Node, add_missing_strategy_keys, child, merge_parameters, show

Choices = Mapping[str, str | None]
"""Group to the name chosen, ``None`` for nothing; groups that are absent keep their default."""

ARM_GROUPS = ("strategy", "after_strategy", "summarizer")


class Composer:
    """Composes choices of groups; results are memoised and must be copied before they are changed."""

    def __init__(self, files: ConfigurationFiles) -> None:
        self.files = files
        self._composed: dict[tuple[tuple[str, str | None], ...], Node] = {}
        self._implied_models: dict[tuple[str | None, str | None], str] = {}

    def __call__(self, choices: Choices) -> Node:
        """Resolve one choice: documentation stripped, presets named, the dataset's defaults for mode and model applied.

        Raises
        ------
        ConfigurationError
            When the files do not compose.
        """
        key = tuple(sorted(choices.items()))
        if key not in self._composed:
            self._composed[key] = self._resolve(choices)
        return self._composed[key]

    def strategy(self, name: str) -> Node:
        """Return a strategy preset as it is shipped."""
        return child(self({"strategy": name}), "strategy")

    def expand_presets(self, value: JSON) -> JSON:
        """Replace each ``{preset: NAME, ...}`` in a list by that preset with the parameters beside it."""
        if isinstance(value, list):
            return [self._expand_item(item) for item in value]
        if isinstance(value, dict):
            return {key: self.expand_presets(item) for key, item in value.items()}
        return value

    def _expand_item(self, item: JSON) -> JSON:
        if not isinstance(item, dict) or "preset" not in item or "kind" in item:
            return self.expand_presets(item)
        name = item["preset"]
        self.files.require("strategy", str(name))
        own = {key: value for key, value in item.items() if key != "preset"}
        return self.expand_presets(merge_parameters(copy.deepcopy(self.strategy(str(name))), own, f"preset {name}"))

    def _resolve(self, choices: Choices) -> Node:
        place = choices.get("dataset", ""), choices.get("experiment", "")
        implied_model = self._implied_models.get(place)
        with_model = {"model": implied_model, **choices} if implied_model else choices
        composed, chosen = self._compose(with_model)
        dataset = composed.get("dataset")
        implied = dataset.pop("implies", None) if isinstance(dataset, dict) else None
        if isinstance(implied, dict):
            composed["mode"] = composed.get("mode") or implied.get("mode")
            if composed.get("model") is None and "model" not in choices and implied.get("model"):
                self._implied_models[place] = show(implied["model"])
                return self._resolve(choices)
        for group in ("strategy", "after_strategy"):
            node = composed.get(group)
            if isinstance(node, dict):
                composed[group] = {"preset": chosen.get(group), **add_missing_strategy_keys(unescaped(node))}
        composed["experiment"] = chosen.get("experiment")
        return composed

    def _compose(self, choices: Choices) -> tuple[Node, dict[str, str | None]]:
        from hydra import compose, initialize_config_dir
        from hydra.core.global_hydra import GlobalHydra
        from hydra.errors import HydraException
        from omegaconf import OmegaConf
        from omegaconf.errors import OmegaConfBaseException
        from yaml import YAMLError

        first, *others = self.files.directories
        overrides = [f"hydra.searchpath=[{','.join(f'file://{path}' for path in others)}]"] if others else []
        for group, name in choices.items():
            target = f"{OVERLAYS[group]}@{group}" if group in OVERLAYS else group
            overrides.append(f"~{target}" if name is None else f"{target}={name}")  # Hydra has no word for none
        GlobalHydra.instance().clear()
        try:
            with initialize_config_dir(str(first), version_base="1.3"):
                config = compose("config", overrides=overrides, return_hydra_config=True)
                chosen = OmegaConf.to_container(config.hydra.runtime.choices)
        except (HydraException, OmegaConfBaseException, YAMLError, ValueError) as error:
            raise ConfigurationError(f"the configuration of {_words(choices)} does not compose: {error}") from error
        container = cast("Node", OmegaConf.to_container(config, resolve=False))
        container.pop("hydra", None)
        names = cast("dict[str, str | None]", chosen)
        renamed = {group: names.get(f"{source}@{group}") for group, source in OVERLAYS.items()}
        return _without_about(container), {**names, **renamed}


@lru_cache(maxsize=4)
def composer(files: ConfigurationFiles) -> Composer:
    """Return the composer of these files; it is shared as long as none of them changes."""
    return Composer(files)


def _without_about(value: Node) -> Node:
    return {
        key: _without_about(item) if isinstance(item, dict) else item for key, item in value.items() if key != "about"
    }


def _words(choices: Choices) -> str:
    return " ".join(f"{group}={'null' if name is None else name}" for group, name in choices.items()) or "the defaults"

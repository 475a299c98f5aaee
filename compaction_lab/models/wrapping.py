"""What every model around an endpoint has in common: it goes by the name of the one it asks."""

from __future__ import annotations

from dataclasses import dataclass

from compaction_lab.models.base import Model
from compaction_lab.models.openai_compatible import OpenAICompatible


@dataclass(frozen=True, slots=True)
class Wrapper:
    """A model around another one.

    Parameters
    ----------
    endpoint
        Whose answers these are in the end; says how a request reads on the wire and how long its answer may be.
    model
        Who is asked: the endpoint, or a wrapper around it.
    """

    endpoint: OpenAICompatible
    model: Model

    @property
    def name(self) -> str:
        """What rows and manifests call it."""
        return self.model.name

    @property
    def simulated(self) -> bool:
        """Whether its answers are made by a stub."""
        return self.model.simulated

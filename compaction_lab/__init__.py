"""Compaction Lab: compare how agents' contexts are compacted, offline, on recorded and live conversations.

The names below are the whole public Python interface; each is imported on first use, so that importing the package
costs nothing.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from compaction_lab.compact import compact
    from compaction_lab.conversation.transcript import Transcript
    from compaction_lab.errors import SummarizerMissing
    from compaction_lab.importers import load_transcripts
    from compaction_lab.replay import replay
    from compaction_lab.statistics.comparison import compare
    from compaction_lab.strategies.agent_framework.reverse import to_agent_framework
    from compaction_lab.strategies.registry import strategy
    from compaction_lab.sweep.loading import load_run

__version__ = "0.1.0"
__all__ = [
    "SummarizerMissing",
    "Transcript",
    "compact",
    "compare",
    "load_run",
    "load_transcripts",
    "replay",
    "strategy",
    "to_agent_framework",
]

_HOME = {
    "SummarizerMissing": "compaction_lab.errors",
    "Transcript": "compaction_lab.conversation.transcript",
    "compact": "compaction_lab.compact",
    "compare": "compaction_lab.statistics.comparison",
    "load_run": "compaction_lab.sweep.loading",
    "load_transcripts": "compaction_lab.importers",
    "replay": "compaction_lab.replay",
    "strategy": "compaction_lab.strategies.registry",
    "to_agent_framework": "compaction_lab.strategies.agent_framework.reverse",
}


class _Package(ModuleType):
    """The package's own module type: a public function wins over the module of the same name that holds it.

    Importing ``compaction_lab.replay`` makes Python bind that module to ``replay`` here, which would turn
    ``lab.replay(...)`` into an error that depends on who imported what first.
    """

    def __setattr__(self, name: str, value: object) -> None:
        if isinstance(value, ModuleType) and _HOME.get(name) == value.__name__:
            value = getattr(value, name)
        super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}; its public names are {__all__}")
    value: object = getattr(import_module(_HOME[name]), name)
    setattr(sys.modules[__name__], name, value)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

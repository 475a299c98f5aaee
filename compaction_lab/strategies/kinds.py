"""Every module that registers a strategy or trigger kind, imported for that effect."""

from importlib import import_module
from pkgutil import iter_modules

from compaction_lab.strategies import (
    agent_framework,
    agent_framework_dotnet,
    composition,
    foreign,
    frameworks,
    guards,
    hybrid,
    mechanisms,
    plain,
    summarization,
    triggers,
    truncation,
)

for package in (mechanisms, frameworks):
    for module in iter_modules(package.__path__, f"{package.__name__}."):
        import_module(module.name)

__all__ = [
    "agent_framework",
    "agent_framework_dotnet",
    "composition",
    "foreign",
    "guards",
    "hybrid",
    "plain",
    "summarization",
    "triggers",
    "truncation",
]

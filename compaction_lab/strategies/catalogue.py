"""The catalogue of strategies as a table: one row a preset, from what its YAML file says about itself.

``python -m compaction_lab.strategies.catalogue > docs/strategies.md`` writes the page that the documentation holds.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import cast

from compaction_lab.configuration import configuration_files
from compaction_lab.conversation.messages import JSON

COLUMNS = (
    ("strategy", "strategy"),
    ("mechanism", "mechanism"),
    ("unit", "unit"),
    ("needs_llm", "needs an LLM"),
    ("cache", "prompt cache"),
    ("keeps_task", "keeps the task message"),
    ("mirrors", "mirrors"),
    ("parity", "parity"),
)
HEAD = """# Strategies

Every preset that ships, from what its file under `conf/strategy/` says of itself
(`python -m compaction_lab.strategies.catalogue > docs/strategies.md`). `compaction-lab options strategy/NAME` adds the
parameters with their meaning and default, and how the same thing is configured in its own framework.

- *mechanism*: M1 no-op, M2 tail window, M3 head window, M4 head and tail, M5 hysteresis, M6 middle-out, M7 observation
  masking, M8 protection by tokens, M9 input clearing, M10 pair removal, M11 collapse to text, M12 superseded content,
  M13 reasoning, M14 media, M15 clipping, M16 limits at birth, M17 offloading, M18 prefix summary, M19 fresh start,
  M20 user messages kept, M21 structured summary, M22 anchored update, M23 overlapping ranges, M24 map-reduce,
  M25 split turn, M26 verification, M27 shared prefix, M28 provider's own, M29 per result, M30 ranking, M31 token
  compression, M32 patterns, M33 memory blocks, M34 digest.
- *prompt cache*: what a firing does to the provider's cached prefix.
- *parity*: faithful (equal to the original by test), approximate (and why), or interface only.
"""


def rows() -> list[dict[str, str]]:
    """Return a row for each preset, plain ones first: its name, one-line description and what its file says of it."""
    files = configuration_files()
    found = []
    for name in files.options("strategy"):
        about = files.read("strategy", name).get("about")
        said = cast("Mapping[str, JSON]", about) if isinstance(about, Mapping) else {}
        row = {key: _text(said.get(key)) for key, _ in COLUMNS if key != "strategy"}
        found.append({"strategy": name, "description": _text(said.get("description")), **row})
    return found


def page() -> str:
    """Return the page as Markdown: a table for each framework."""
    folders: dict[str, list[dict[str, str]]] = {}
    for row in rows():
        folder, _, _ = row["strategy"].rpartition("/")
        folders.setdefault(folder or "plain and general", []).append(row)
    parts = [HEAD]
    head = " | ".join(title for _, title in COLUMNS)
    rule = " | ".join("---" for _ in COLUMNS)
    for folder, members in folders.items():
        lines = [f"## {folder}", "", f"| {head} |", f"| {rule} |"]
        for row in members:
            first = f"**{row['strategy'].rpartition('/')[2]}**: {row['description']}"
            cells = [first, *(row[key] for key, _ in COLUMNS[1:])]
            lines.append(f"| {' | '.join(cell or '-' for cell in map(_escaped, cells))} |")
        parts.append("\n".join(lines) + "\n")
    return "\n".join(parts)


def _text(value: JSON) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return " ".join(str(value).split())


def _escaped(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    sys.stdout.write(page())

"""The lines of a Claude Code session as the graph they are: which of them lead to where the session stands now.

Lines name their parent. A rewind leaves a branch behind; a compaction starts anew and names what came before as its
*logical* parent; calls made together hang below one another, and so do their results, some of them off the path.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from compaction_lab.conversation.messages import JSON
from compaction_lab.importers.source import Record


@dataclass(frozen=True, slots=True)
class Line:
    """One line that is part of the graph.

    Parameters
    ----------
    number
        Its position in the file, which is the order in which things happened.
    value, place
        What it says and where it stands.
    """

    number: int
    value: Mapping[str, JSON]
    place: Record

    def text(self, key: str) -> str:
        """Return a text of the line, empty when there is none."""
        value = self.value.get(key)
        return value if isinstance(value, str) else ""

    @property
    def message(self) -> Mapping[str, JSON]:
        """The message of the line, empty when it has none."""
        value = self.value.get("message")
        return value if isinstance(value, dict) else {}

    @property
    def response(self) -> str:
        """Id of the response that the line is a block of, empty when it is none."""
        value = self.message.get("id")
        return value if isinstance(value, str) else ""

    @property
    def is_boundary(self) -> bool:
        """Whether the agent compacted its context here."""
        return self.text("type") == "system" and self.text("subtype").endswith("compact_boundary")

    def blocks(self, kind: str) -> list[Mapping[str, JSON]]:
        """Return the content blocks of a type."""
        content = self.message.get("content")
        blocks = content if isinstance(content, list) else []
        return [block for block in blocks if isinstance(block, dict) and block.get("type") == kind]


def kept_lines(lines: Sequence[Line], warnings: Counter[str]) -> list[Line]:
    """Return the lines of the branch that was kept, in the order they happened.

    A file in which no line names a parent is a plain list. What is left behind counts as ``abandoned_message``.
    """
    spoken = [line for line in lines if line.text("type") in {"user", "assistant"}]
    if not spoken or not any(line.text("parentUuid") or line.text("logicalParentUuid") for line in lines):
        return list(lines)
    by_id = {line.text("uuid"): line for line in lines}
    path = _path(spoken[-1], by_id, lines, warnings)
    kept = {line.number for line in path}
    _add_parallel(lines, kept)
    warnings["abandoned_message"] += sum(line.number not in kept for line in spoken)
    return [line for line in lines if line.number in kept]


def chains(lines: Iterable[Line]) -> list[list[Line]]:
    """Return the lines of each side chain: those of one sub-agent, or connected by parents where none is named."""
    by_name: dict[str, list[Line]] = defaultdict(list)
    chain_of: dict[str, str] = {}
    for line in lines:
        name = line.text("agentId") or chain_of.get(line.text("parentUuid")) or line.text("uuid")
        chain_of[line.text("uuid")] = name
        by_name[name].append(line)
    return list(by_name.values())


def _path(leaf: Line, by_id: Mapping[str, Line], lines: Sequence[Line], warnings: Counter[str]) -> list[Line]:
    before = {line.number: earlier for earlier, line in pairwise(lines)}
    path: list[Line] = []
    seen: set[int] = set()
    line: Line | None = leaf
    while line is not None and line.number not in seen:
        seen.add(line.number)
        path.append(line)
        named = line.text("parentUuid") or line.text("logicalParentUuid")
        parent = by_id.get(named) or by_id.get(line.text("logicalParentUuid"))
        if parent is None and line.is_boundary:
            parent = before.get(line.number)  # written without what came before, which then precedes it in the file
        elif parent is None and named:
            warnings["missing_parent"] += 1
        line = parent
    return path


def _add_parallel(lines: Sequence[Line], kept: set[int]) -> None:
    """Add the blocks of kept responses, and results of their calls, that hang beside the path."""
    responses = {line.response for line in lines if line.number in kept} - {""}
    open_calls: set[str] = set()
    for line in lines:
        if line.text("type") == "assistant" and line.response in responses:
            kept.add(line.number)
            found = (block.get("id") for block in line.blocks("tool_use"))
            open_calls.update(each for each in found if isinstance(each, str))
    for line in lines:
        if line.number in kept:
            open_calls.difference_update(_answered(line))
    for line in lines:
        answered = _answered(line)
        if line.number not in kept and answered & open_calls:
            kept.add(line.number)
            open_calls -= answered


def _answered(line: Line) -> set[str]:
    found = (block.get("tool_use_id") for block in line.blocks("tool_result"))
    return {each for each in found if isinstance(each, str)}

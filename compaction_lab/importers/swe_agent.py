"""SWE-agent trajectories (``.traj``): the ``history`` with tool calls, or the older one with observations as user text.

Semantics: SWE-agent 1.x ``agent/agents.py`` and ``types.py``. A step records only its text; usage is an aggregate.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from compaction_lab.conversation.json_values import describe
from compaction_lab.conversation.messages import JSON, Message
from compaction_lab.conversation.transcript import Transcript
from compaction_lab.conversation.wire import from_openai
from compaction_lab.importers.base import Importer, assemble
from compaction_lab.importers.sniffing import outline
from compaction_lab.importers.source import Record, Source

_WIRE_KEYS = frozenset({"role", "content", "tool_calls", "name"})
_ELISION = re.compile(r"Old environment output: \(\d+ lines? omitted\)|^\d+ images? removed", re.MULTILINE)
_MAIN_AGENTS = frozenset({"main", "primary"})


def sniff(head: bytes, path: Path) -> float:
    """Return how likely the file is a trajectory; one with its middle beyond the head is known by its name."""
    keys = outline(head).keys
    if "history" in keys and (keys & {"trajectory", "info"} or path.suffix == ".traj"):
        return 0.9
    if "trajectory" in keys and "environment" in keys:
        return 0.8
    return 0.3 if "history" in keys else 0.0


def records(source: Source) -> Iterator[Record]:
    """Yield the file as one record."""
    yield source.document()


def read(record: Record) -> Iterator[Transcript]:
    """Yield the conversation of a trajectory.

    Raises
    ------
    TranscriptError
        If there is no ``history``, or one of its items is not a message.
    """
    value = record.value()
    history = value.get("history") if isinstance(value, dict) else None
    if not isinstance(value, dict) or not isinstance(history, list):
        record.refuse("history", f"found {describe(history)}", "a list of messages", "give a complete .traj file")
    warnings: Counter[str] = Counter()
    messages = [_message(item, record.at(f"history[{index}]"), warnings) for index, item in enumerate(history)]
    agents = {item.get("agent") for item in history if isinstance(item, dict)} - {None}
    if len(agents) > 1:
        warnings["several_agents"] += 1
    yield assemble(
        record,
        messages,
        format_name=IMPORTER.name,
        meta=_meta(value),
        warnings=warnings,
        places=[record.at(f"history[{index}]") for index in range(len(history))],
    )


def _message(item: JSON, where: str, warnings: Counter[str]) -> Message:
    if not isinstance(item, dict):
        return from_openai(item, where)  # which refuses it
    mapping: dict[str, JSON] = {key: item[key] for key in _WIRE_KEYS if item.get(key) is not None}
    mapping.setdefault("content", item.get("content"))
    ids = item.get("tool_call_ids")
    if isinstance(ids, list) and ids:
        # A result that names several calls answers the first, as the agent sends it; the others count as unanswered.
        mapping["tool_call_id"] = ids[0]
        warnings["shared_result"] += len(ids) > 1
    message = from_openai(mapping, where)
    recorded = item.get("tags")
    tags = [tag for tag in recorded if isinstance(tag, str)] if isinstance(recorded, list) else []
    if isinstance(kind := item.get("message_type"), str):
        tags.insert(0, kind)
    if item.get("is_demo"):
        tags.append("demo")
    agent = item.get("agent")
    if isinstance(agent, str) and agent not in _MAIN_AGENTS:
        tags.append(f"agent:{agent}")
    warnings["elided_observation"] += bool(_ELISION.search(message.text))
    return replace(message, tags=tuple(tags))


def _meta(value: Mapping[str, JSON]) -> dict[str, JSON]:
    meta: dict[str, JSON] = {}
    if isinstance(environment := value.get("environment"), str):
        meta["environment"] = environment
    info = value.get("info")
    if not isinstance(info, dict):
        return meta
    if info.get("exit_status") is not None:
        meta["exit_status"] = info["exit_status"]
    stats = info.get("model_stats")
    if isinstance(stats, dict):
        # The agent writes 0 for what its model did not report.
        meta["usage"] = {
            ours: stats.get(theirs) or None
            for ours, theirs in (
                ("model_calls", "api_calls"),
                ("input_tokens", "tokens_sent"),
                ("output_tokens", "tokens_received"),
                ("cost_usd", "instance_cost"),
            )
        }
    return meta


IMPORTER = Importer("swe_agent", "SWE-agent trajectories (.traj) and demonstrations", sniff, records, read)

"""tau-bench runs: a list of trials, each with its conversation in OpenAI chat format and the reward it earned."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from compaction_lab.conversation.messages import JSON
from compaction_lab.conversation.transcript import Transcript
from compaction_lab.conversation.wire import from_openai
from compaction_lab.importers.base import Importer, assemble
from compaction_lab.importers.fields import Fields
from compaction_lab.importers.sniffing import outline
from compaction_lab.importers.source import Record, Source


def sniff(head: bytes, path: Path) -> float:
    """Return how likely the file is a run."""
    del path
    keys = outline(head).keys
    return 0.9 if {"task_id", "reward"} <= keys or {"task_id", "traj"} <= keys else 0.0


def records(source: Source) -> Iterator[Record]:
    """Yield one record a trial."""
    for place, value in source.whole().values():
        yield place if place.line is not None else place.part("", value)


def read(record: Record) -> Iterator[Transcript]:
    """Yield the conversation of a trial; ``meta`` holds the reward and what the simulated user cost.

    Raises
    ------
    TranscriptError
        If it has no conversation, or a message is not one.
    """
    fields = Fields.of(record.value(), record.where)
    messages = [
        from_openai(item, record.at(f"traj[{at}]"), keep_media=record.keep_media)
        for at, item in enumerate(fields.items("traj"))
    ]
    info = fields.mapping("info")
    meta: dict[str, JSON] = {key: fields.object.get(key) for key in ("task_id", "trial", "reward")}
    if info.get("user_cost") is not None:
        meta["user_cost_usd"] = info["user_cost"]
    yield assemble(
        record,
        messages,
        format_name=IMPORTER.name,
        transcript_id=f"task-{meta['task_id']}-trial-{meta['trial']}",
        meta=meta,
        places=[record.at(f"traj[{at}]") for at in range(len(messages))],
    )


IMPORTER = Importer("tau_bench", "tau-bench runs, a list of trials", sniff, records, read)

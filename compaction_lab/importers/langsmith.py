"""LangSmith runs: the llm runs of a tree, list or export, folded into the conversations they were.

The wire format that splits a run into ``post`` and ``patch`` is put together again; runs are ordered by
``dotted_order``, never by where they stand. Semantics: langsmith-sdk ``schemas.py``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from compaction_lab.conversation.messages import JSON, Message, ToolDefinition
from compaction_lab.conversation.transcript import Transcript
from compaction_lab.conversation.wire import tools_from_openai
from compaction_lab.importers.base import Importer
from compaction_lab.importers.calls import measured, transcripts_of
from compaction_lab.importers.content import parsed, with_usage
from compaction_lab.importers.fields import Fields
from compaction_lab.importers.folding import Exchange
from compaction_lab.importers.shapes import read_shape
from compaction_lab.importers.sniffing import outline
from compaction_lab.importers.source import Record, Source

_THREADS = ("thread_id", "session_id", "conversation_id")
_WRAPPED = ("post", "patch", "runs", "child_runs")


def sniff(head: bytes, path: Path) -> float:
    """Return how likely the file holds runs."""
    del path
    keys = outline(head).keys
    if "run_type" in keys or {"dotted_order", "trace_id"} <= keys:
        return 0.95
    return 0.8 if b'"run_type"' in head and keys & set(_WRAPPED) else 0.0


def records(source: Source) -> Iterator[Record]:
    """Yield the file as one record: a run may span its lines."""
    yield source.whole()


def read(record: Record) -> Iterator[Transcript]:
    """Yield the conversations of the runs.

    Raises
    ------
    TranscriptError
        If no llm run holds messages, or they are in no shape the lab knows.
    """
    runs: dict[str, Fields] = {}
    for place, value in record.values():
        found = list(_runs(Fields.of(value, place.where)))
        record.warnings["unread_line"] += not found
        for run in found:
            name = run.text("id") or str(len(runs))
            known = runs[name].object if name in runs else {}
            runs[name] = Fields({**known, **{k: v for k, v in run.object.items() if v is not None}}, run.where)
    llm = [run for run in runs.values() if run.object.get("run_type") == "llm"]
    ordered = sorted(llm, key=lambda run: run.text("dotted_order") or _text(run.object.get("start_time")))
    failed = [run for run in ordered if not run.object.get("outputs")]
    warnings = record.warnings
    warnings["unanswered_request"] += len(failed)
    yield from transcripts_of(
        record, [_exchange(run, record) for run in ordered if run.object.get("outputs")], "langsmith"
    )


def _runs(fields: Fields) -> Iterator[Fields]:
    """Yield a run, the runs below it, and those of the batches that the wire format has."""
    waiting = [fields]
    while waiting:
        each = waiting.pop()
        if "run_type" in each.object or "outputs" in each.object:
            yield each
        for key in _WRAPPED:
            inner = each.object.get(key)
            found = inner if isinstance(inner, list) else [inner] if isinstance(inner, dict) else []
            waiting.extend(Fields(item, f"{each.where}.{key}") for item in reversed(found) if isinstance(item, dict))


def _exchange(run: Fields, record: Record) -> Exchange:
    inputs = parsed(run.object.get("inputs"))
    outputs = Fields.of(parsed(run.object.get("outputs")), f"{run.where}.outputs")
    extra = Fields(run.mapping("extra"), f"{run.where}.extra")
    invocation = extra.mapping("invocation_params")
    metadata = extra.mapping("metadata")
    asked: dict[str, JSON] = {**invocation, **(inputs if isinstance(inputs, dict) else {})}
    sent = read_shape(inputs, f"{run.where}.inputs", keep_media=record.keep_media)
    received = read_shape(_said(outputs), outputs.where, keep_media=record.keep_media)
    record.warnings.update(sent.warnings)
    record.warnings.update(received.warnings)
    facts = {
        key: run.object[key] for key in ("start_time", "end_time", "total_cost") if run.object.get(key) is not None
    }
    model = metadata.get("ls_model_name")
    answered: dict[str, JSON] = {"model": model, **outputs.object, **facts}
    counted: Counter[str] = Counter()
    messages = measured(received.messages, {}, answered, counted)
    at = next((at for at, message in enumerate(messages) if message.role == "assistant"), None)
    if at is not None:
        messages[at] = _with_usage(messages[at], received.messages[at], outputs, counted)
    record.warnings.update(counted)
    name = next((v for key in _THREADS if isinstance(v := metadata.get(key), str)), run.text("trace_id"))
    tools = sent.tools or _tools(asked, run.where)
    return Exchange(sent.messages, messages, tools, name, run.text("id"))


def _with_usage(message: Message, said: Message, outputs: Fields, warnings: Counter[str]) -> Message:
    """Return the message with one usage: what LangSmith normalised, else the message's own, else the provider's."""
    output = outputs.object
    llm_output = output.get("llm_output")
    tokens = llm_output.get("token_usage") if isinstance(llm_output, dict) else None
    message = replace(message, usage=message.usage or said.usage, model=message.model or said.model)
    for payload, dialect in ((tokens, "litellm"), (output.get("usage_metadata"), "langsmith")):
        message = with_usage(message, payload, dialect, warnings) if payload else message
    return message


def _said(outputs: Fields) -> JSON:
    """Return the messages in a run's outputs, whichever wrapper wrote them."""
    found = outputs.object
    generations = found.get("generations")
    while isinstance(generations, list) and generations:
        generations = generations[0]
    if isinstance(generations, dict):
        message = generations.get("message")
        return [message] if message is not None else {"role": "assistant", "content": generations.get("text")}
    for key in ("choices", "message", "messages", "output"):
        if found.get(key):
            return {key: found[key]}
    return {"role": "assistant", **{k: v for k, v in found.items() if k in {"role", "content", "tool_calls"}}}


def _tools(asked: dict[str, JSON], where: str) -> tuple[ToolDefinition, ...]:
    tools = asked.get("tools", asked.get("functions"))
    return tools_from_openai(tools, f"{where}.tools") if isinstance(tools, list) else ()


def _text(value: JSON) -> str:
    return value if isinstance(value, str) else ""


IMPORTER = Importer("langsmith", "LangSmith runs: a tree, a list, an export or the wire format", sniff, records, read)

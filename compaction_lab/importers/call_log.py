"""Logs of model calls: a request and its response a line, in the shape of OpenAI chat, OpenAI Responses or Anthropic.

Calls that repeat the history of an earlier one are the same conversation; it is kept once, with each call's usage.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from compaction_lab.conversation.json_values import describe
from compaction_lab.conversation.messages import JSON
from compaction_lab.conversation.transcript import Transcript
from compaction_lab.importers.base import Importer
from compaction_lab.importers.calls import exchange, transcripts_of
from compaction_lab.importers.content import parsed
from compaction_lab.importers.folding import Exchange
from compaction_lab.importers.sniffing import outline
from compaction_lab.importers.source import Record, Source

_REQUESTS = ("request", "request_body", "kwargs", "body")
_RESPONSES = ("response", "response_body")
_ANSWERS = frozenset({"choices", "output", "content"})


def sniff(head: bytes, path: Path) -> float:
    """Return how likely the file is a log of requests with responses."""
    del path
    keys = outline(head).keys
    if keys & set(_REQUESTS) and keys & set(_RESPONSES):
        return 0.85
    if "messages" in keys and keys & {"choices", "response"}:
        return 0.85
    return 0.6 if "choices" in keys else 0.0


def records(source: Source) -> Iterator[Record]:
    """Yield the file as one record: a conversation may span its lines."""
    yield source.whole()


def read(record: Record) -> Iterator[Transcript]:
    """Yield the conversations of a log.

    Raises
    ------
    TranscriptError
        If a line is not a call, or in no shape the lab knows.
    """
    yield from transcripts_of(
        record, [_exchange(place, value, record) for place, value in record.values()], IMPORTER.name
    )


def _exchange(place: Record, value: JSON, record: Record) -> Exchange:
    if not isinstance(value, dict):
        place.refuse("", f"found {describe(value)}", "an object with a request and a response", "remove the line")
    request = _inner(value, _REQUESTS)
    response = _inner(value, _RESPONSES)
    if not response and not value.keys() & _ANSWERS:
        place.refuse("", "found no response", "an object with a request and its response", "remove the line")
    beside = {key: item for key, item in value.items() if key not in {*_REQUESTS, *_RESPONSES}}
    return exchange({**beside, **request} if request else beside, response or value, place, record.warnings)


def _inner(value: dict[str, JSON], keys: tuple[str, ...]) -> dict[str, JSON]:
    """Return the request or response, out of the ``body`` and JSON text that some logs wrap it in."""
    for key in keys:
        found = parsed(value.get(key))
        if isinstance(found, dict):
            body = parsed(found.get("body", found.get("parsed_body")))
            return body if isinstance(body, dict) else found
    return {}


IMPORTER = Importer(
    "call_log",
    "requests with their responses (OpenAI chat or Responses, Anthropic), a call a line",
    sniff,
    records,
    read,
)

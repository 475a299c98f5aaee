"""Spans out of OTLP/JSON or a console exporter, with plain attributes; messages in events become attributes too."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from compaction_lab.conversation.messages import JSON
from compaction_lab.importers.content import parsed
from compaction_lab.importers.fields import Fields
from compaction_lab.importers.source import Record
from compaction_lab.importers.times import epoch_seconds

_INT64_DIGITS = 20
_INPUT, _OUTPUT = "gen_ai.input.messages", "gen_ai.output.messages"
_EVENT_ROLES = {
    "gen_ai.system.message": "system",
    "gen_ai.user.message": "user",
    "gen_ai.assistant.message": "assistant",
    "gen_ai.tool.message": "tool",
}


@dataclass(frozen=True, slots=True)
class Span:
    """One span.

    Parameters
    ----------
    id, trace
        Its id and that of its trace.
    start_s, end_s
        In seconds since the epoch.
    attributes
        By name; messages that were recorded as events stand under the names of the newer conventions.
    where
        Its place, for error messages.
    """

    id: str
    trace: str
    start_s: float | None
    end_s: float | None
    attributes: dict[str, JSON]
    where: str

    @property
    def has_content(self) -> bool:
        """Whether the messages sent were captured."""
        return bool(self.attributes.get(_INPUT)) or bool(self.attributes.get(_OUTPUT))

    def text(self, key: str) -> str:
        """Return a text attribute, empty when there is none."""
        value = self.attributes.get(key)
        return value if isinstance(value, str) else ""


def spans_of(fields: Fields, place: Record) -> Iterator[Span]:
    """Yield the spans of an OTLP request, or the one that a line of a console exporter is.

    Raises
    ------
    TranscriptError
        If a list or object of OTLP is something else.
    """
    resources = fields.items("resourceSpans") or fields.items("resource_spans")
    if not resources and "attributes" in fields.object:
        yield _span(fields, place.where)
        return
    for number, resource in enumerate(resources):
        inner = Fields.of(resource, place.at(f"resourceSpans[{number}]"))
        scopes = inner.items("scopeSpans") or inner.items("scope_spans") or inner.items("instrumentationLibrarySpans")
        for at, scope in enumerate(scopes):
            where = f"{inner.where}.scopeSpans[{at}]"
            for index, span in enumerate(Fields.of(scope, where).items("spans")):
                yield _span(Fields.of(span, f"{where}.spans[{index}]"), f"{where}.spans[{index}]")


def _span(fields: Fields, where: str) -> Span:
    context = Fields(fields.mapping("context"), where)
    attributes = _attributes(fields.object.get("attributes"))
    for item in fields.items("events"):
        _take_event(Fields.of(item, f"{where}.events"), attributes)
    return Span(
        fields.text("spanId") or fields.text("span_id") or context.text("span_id"),
        fields.text("traceId") or fields.text("trace_id") or context.text("trace_id"),
        epoch_seconds(fields.object.get("startTimeUnixNano", fields.object.get("start_time"))),
        epoch_seconds(fields.object.get("endTimeUnixNano", fields.object.get("end_time"))),
        attributes,
        where,
    )


def _take_event(event: Fields, attributes: dict[str, JSON]) -> None:
    stated = _attributes(event.object.get("attributes"))
    name = event.text("name")
    if name == "gen_ai.client.inference.operation.details":
        attributes.update(stated)
    body: dict[str, JSON] = {**stated, **_attributes(event.object.get("body"))}
    if name in _EVENT_ROLES:
        _append(attributes, _INPUT, _message(body, _EVENT_ROLES[name]))
    elif name == "gen_ai.choice":
        inner = parsed(body.get("message"))
        _append(attributes, _OUTPUT, _message(inner if isinstance(inner, dict) else body, "assistant"))


def _message(body: Mapping[str, JSON], role: str) -> dict[str, JSON]:
    """Return an event's message in OpenAI's shape, which the older conventions followed."""
    stated = body.get("role")
    message: dict[str, JSON] = {"role": stated if isinstance(stated, str) else role, "content": body.get("content")}
    if isinstance(calls := parsed(body.get("tool_calls")), list):
        message["tool_calls"] = calls
    if role == "tool":
        message["tool_call_id"] = body.get("id", body.get("tool_call_id"))
    return message


def _append(attributes: dict[str, JSON], key: str, message: JSON) -> None:
    found = attributes.setdefault(key, [])
    if isinstance(found, list):
        found.append(message)


def _attributes(value: JSON) -> dict[str, JSON]:
    """Return attributes by name, whether they were a mapping or OTLP's list of keys and typed values."""
    if isinstance(value, dict):
        inner = value.get("kvlistValue")
        return _attributes(inner.get("values")) if isinstance(inner, dict) else value
    found: dict[str, JSON] = {}
    for item in value if isinstance(value, list) else []:
        key = item.get("key") if isinstance(item, dict) else None
        if isinstance(item, dict) and isinstance(key, str):
            found[key] = _plain(item.get("value"))
    return found


def _plain(value: JSON) -> JSON:
    if not isinstance(value, dict):
        return value
    for kind in ("stringValue", "boolValue", "doubleValue", "bytesValue"):
        if kind in value:
            return value[kind]
    if "intValue" in value:  # 64-bit integers are text in JSON
        number = value["intValue"]
        short = isinstance(number, str) and len(number) <= _INT64_DIGITS and number.removeprefix("-").isdecimal()
        return int(str(number)) if short else number
    if isinstance(listed := value.get("arrayValue"), dict):
        values = listed.get("values")
        return [_plain(item) for item in values] if isinstance(values, list) else []
    if isinstance(mapped := value.get("kvlistValue"), dict):
        return dict(_attributes(mapped.get("values")))
    return None

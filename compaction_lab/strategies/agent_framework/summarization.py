"""Agent Framework's ``SummarizationStrategy``: a model writes one message that replaces the oldest groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from compaction_lab.conversation.messages import system, user
from compaction_lab.models.base import ModelRequest
from compaction_lab.strategies.agent_framework.acting import Acting, Acts
from compaction_lab.strategies.agent_framework.checks import refuse
from compaction_lab.strategies.agent_framework.contents import Content, Facets
from compaction_lab.strategies.agent_framework.entries import Entry, Group
from compaction_lab.strategies.agent_framework.ledger import Ledger
from compaction_lab.strategies.agent_framework.tokens import CHARACTERS, Tokenizer, resolve
from compaction_lab.strategies.agent_framework.tool_calls import plain
from compaction_lab.strategies.base import Situation
from compaction_lab.strategies.registry import register

PROMPT = (
    "Summarise the whole conversation below in five sentences or fewer. Speak for the user's side and the assistant's, "
    "keep what is needed to go on with it, carry over everything that an earlier summary in it says, and put the "
    "points that matter most first. Do not judge, correct or interpret, do not point out mistakes, and add nothing "
    "that is not in the conversation."
)
MANY_FAILURES = 3


@register("agent_framework/summarization", semantics=1)
@dataclass(frozen=True, slots=True)
class Summarization(Acts):
    """Replace the oldest groups by a summary once messages outnumber ``target_count + threshold`` (mechanism M18).

    Parameters
    ----------
    target_count, threshold
        Messages outside system groups to keep, whole groups, and how many more may gather before the next summary.
    prompt
        What the summariser is told; the lab's own wording when not given.
    max_summary_input_tokens
        Most tokens of prompt and transcript: what does not fit waits, and a first group that is too long is skipped.
    tokenizer
        Counts the summariser's input; the framework's character estimate when not given.
    """

    target_count: int = 4
    threshold: int | None = 2
    prompt: str | None = None
    max_summary_input_tokens: int | None = 8000
    tokenizer: object = None

    def __post_init__(self) -> None:
        """Check the parameters as the framework does."""
        most = self.max_summary_input_tokens
        refuse(self.target_count <= 0, "target_count must be greater than 0.")
        refuse((self.threshold or 0) < 0, "threshold must be greater than or equal to 0.")
        refuse(most is not None and most <= 0, "max_summary_input_tokens must be greater than 0.")
        resolve(self.tokenizer)

    def act(self, ledger: Ledger, situation: Situation) -> bool | Acting:  # noqa: ARG002 - the protocol's shape
        """Ask for a summary when there are too many messages."""
        if ledger.talk <= self.target_count + (self.threshold or 0):
            return False
        old = self._old(ledger)
        if not old:
            return False
        return self._summarise(ledger, old)

    def _old(self, ledger: Ledger) -> list[Group]:
        """Return the groups older than the newest ones that hold ``target_count`` messages."""
        groups = [group for group in ledger.oldest() if group.kind != "system"]
        kept = 0
        while groups and kept < self.target_count:
            kept += groups.pop().included
        return [group for group in groups if not group.pinned]

    def _summarise(self, ledger: Ledger, old: list[Group]) -> Acting:
        prompt = self.prompt or PROMPT
        chosen = self._fitting(old, prompt)
        if not chosen:
            return _failed(ledger, "no group fits the summarizer's input")
        entries = [entry for group in chosen for entry in group.members if not entry.excluded]
        transcript = "\n".join(_lines(entries, 1))
        (reply,) = yield (ModelRequest((system(prompt), user(transcript)), "summarizer"),)
        if reply.error:
            return _failed(ledger, f"summarizer failed ({reply.error})")
        text = reply.text.strip()
        if not text:
            return _failed(ledger, "empty summary")
        ledger.failures = 0
        first = min((group.members[0] for group in chosen), key=lambda entry: entry.label)
        ledger.reasons.append(f"{ledger.talk} messages > {self.target_count} + {self.threshold or 0}")
        ledger.summarise(entries, first, text, f"summary_{len(ledger.entries)}", "summarised")
        return True

    def _fitting(self, groups: list[Group], prompt: str) -> list[Group]:
        """Return the oldest groups that fit the input: leading ones too long are skipped, the next that is ends it."""
        most = self.max_summary_input_tokens
        if most is None:
            return groups
        tokenizer = self._counter
        used, newline = tokenizer.count_tokens(prompt), tokenizer.count_tokens("\n")
        chosen: list[Group] = []
        number = 1
        for group in groups:
            entries = [entry for entry in group.members if not entry.excluded]
            needed = tokenizer.count_tokens("\n".join(_lines(entries, number))) + (newline if chosen else 0)
            if used + needed > most:
                if chosen:
                    break
                continue
            chosen.append(group)
            used += needed
            number += len(entries)
        return chosen

    @property
    def _counter(self) -> Tokenizer:
        return resolve(self.tokenizer) or CHARACTERS


def _failed(ledger: Ledger, why: str) -> bool:
    ledger.failures += 1
    times = f" ({ledger.failures} times in a row)" if ledger.failures >= MANY_FAILURES else ""
    ledger.outcome = f"rejected: {why}{times}"
    return False


def _lines(entries: Sequence[Entry], start: int) -> list[str]:
    return [line(number, entry.facets) for number, entry in enumerate(entries, start)]


def line(number: int, message: Facets) -> str:
    """Return a message as the summariser is shown it: ``3. [user] text``, calls and results in their own notation."""
    parts: list[str] = []
    texts: list[str] = []
    for content in message.contents:
        shown = _shown(content)
        if shown:
            if texts:
                parts.append(" ".join(texts))
                texts = []
            parts.append(shown)
        elif content["type"] == "text" and content.get("text"):
            texts.append(str(content["text"]))
    if texts:
        parts.append(" ".join(texts))
    body = "; ".join(parts) or ", ".join(str(content["type"]) for content in message.contents)
    return f"{number}. [{message.role}] {body}"


def _shown(content: Content) -> str:
    kind = content["type"]
    call_id = f" [call_id={content['call_id']}]" if content.get("call_id") else ""
    error = "error: " if content.get("exception") is not None else ""
    match kind:
        case "function_call" | "mcp_server_tool_call":
            word, field = ("function_call", "name") if kind == "function_call" else ("mcp_tool_call", "tool_name")
            given = content.get("arguments")
            return f"{word} {content.get(field) or ''}({'' if given is None else plain(given)}){call_id}"
        case "function_result":
            items = content.get("items")
            text = _items(items) if isinstance(items, list) and items else ""
            if not text:
                found = content.get("result")
                text = "no result" if found is None else plain(found)
            return f"function_result: {error}{text}{call_id}"
        case "mcp_server_tool_result":
            return f"mcp_tool_result: {error}{plain(content.get('output'))}{call_id}"
        case "computer_tool_call":
            actions = content.get("actions")
            return f"computer_tool_call: {'no actions' if actions is None else plain(actions)}{call_id}"
        case "computer_tool_result":
            return f"computer_tool_result{'' if content.get('screenshot') is None else ': screenshot'}{call_id}"
        case "function_approval_request" | "function_approval_response":
            return _approval(content)
    return ""


def _approval(content: Content) -> str:
    call = content.get("function_call")
    name = (call.get("name") or call.get("tool_name") or "") if isinstance(call, dict) else ""
    asked = content["type"] == "function_approval_request"
    shown = f"{'approval_request' if asked else 'approval_response'}: {name} [id={content.get('id')}]"
    return shown if asked else f"{shown} approved={content.get('approved')}"


def _items(items: Sequence[object]) -> str:
    lines = []
    for item in items:
        if not isinstance(item, dict):
            continue
        if item["type"] == "text" and item.get("text"):
            lines.append(str(item["text"]))
        elif item["type"] == "error":
            parts = (str(part) for part in (item.get("message"), item.get("error_details")) if part)
            label = ": ".join(parts)
            lines.append(f"error({item['error_code']}): {label}" if item.get("error_code") else label)
        else:
            lines.append(_metadata(item))
    return "\n".join(filter(None, lines))


def _metadata(item: Content) -> str:
    properties = item.get("additional_properties")
    path = properties.get("path") if isinstance(properties, dict) else None
    stated = {
        "media_type": item.get("media_type"),
        "uri": item.get("uri") if item["type"] == "uri" else None,
        "path": path if item["type"] == "data" and isinstance(path, str) else None,
        "file_id": item.get("file_id"),
        "name": item.get("name"),
    }
    details = ", ".join(f"{key}={value}" for key, value in stated.items() if value)
    return f"{item['type']} content" + (f" ({details})" if details else "")

"""``compact``: one message list through one strategy, once."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, cast

from compaction_lab.commands.arguments import Parser, add_config_dir, add_json, verb
from compaction_lab.commands.single import single_configuration
from compaction_lab.conversation.messages import JSON
from compaction_lab.errors import ConfigurationError, TranscriptError

if TYPE_CHECKING:
    from compaction_lab.compact import Summarizer
    from compaction_lab.sweep.nodes import Node

EXAMPLES = """\
  compaction-lab compact messages.json strategy=sliding_window strategy.keep_last=2
  compaction-lab compact - strategy=truncation strategy.max_tokens=8000 < messages.json > shorter.json
"""
TEXT = """\
FILE holds a list of OpenAI chat messages, or an object with messages and tools; - reads standard input. The
messages to send go to standard output, what was done to standard error. The last turn or step of the list counts as
still running: a window of keep_last=2 turns keeps the two before it as well."""
ALLOWED = frozenset({"strategy", "summarizer", "tokenizer"})


def register(verbs: argparse._SubParsersAction[Parser]) -> None:
    """Add the verb."""
    parser = verb(verbs, "compact", "one-off compaction of a message list, as messages", TEXT, EXAMPLES)
    parser.add_argument("file", metavar="FILE", help="messages as JSON, or - for standard input")
    parser.add_argument("overrides", nargs="*", metavar="KEY=VALUE", help="strategy=..., its parameters, tokenizer=...")
    add_config_dir(parser)
    add_json(parser)


def execute(args: argparse.Namespace) -> int:
    """Compact the list and print it."""
    config = _configuration(args)
    messages, tools = _read(args.file)
    from compaction_lab.compact import compact
    from compaction_lab.strategies.registry import build

    strategy = build(cast("Node", config["strategy"]))
    tokenizer = str(config.get("tokenizer") or "o200k_base")
    try:
        done = compact(messages, strategy, tools=tools, tokenizer=tokenizer, summarizer=_summarizer(config))
    except TranscriptError as error:
        raise TranscriptError(f"{'standard input' if args.file == '-' else args.file}: {error}") from error
    if args.json:
        result = {
            "messages": done.messages,
            "tokens_before": done.tokens_before,
            "tokens_after": done.tokens_after,
            "changed": done.changed,
            "findings": [asdict(finding) for finding in done.findings],
        }
        print(json.dumps(result, indent=2, ensure_ascii=False))
        return 0
    print(json.dumps(done.messages, indent=2, ensure_ascii=False))
    what = "changed" if done.changed else "unchanged"
    sizes = f"{done.tokens_before:,} -> {done.tokens_after:,} tokens ({tokenizer})"
    print(f"{what}: {len(messages)} -> {len(done.messages)} messages, {sizes}", file=sys.stderr)
    for finding in done.findings:
        place = "" if finding.message_index is None else f" messages[{finding.message_index}]:"
        print(f"{finding.rule}:{place} {finding.text}", file=sys.stderr)
    return 0


def _configuration(args: argparse.Namespace) -> Node:
    from compaction_lab.sweep.cells import require_values

    takes = "compact takes a strategy, its parameters, summarizer and tokenizer"
    config, given = single_configuration(args, ALLOWED, takes)
    if "strategy" not in given:
        raise ConfigurationError("compact: which strategy? Add strategy=NAME (`compaction-lab options strategy`)")
    require_values({"strategy": config["strategy"]})
    return config


def _read(name: str) -> tuple[list[dict[str, JSON]], list[dict[str, JSON]] | None]:
    try:
        content = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
        parsed = json.loads(content.decode("utf-8-sig"))
    except OSError as error:
        raise TranscriptError(f"{name}: {error.strerror}; expected a file with a JSON list of messages") from error
    except ValueError as error:
        raise TranscriptError(f"{name}: not JSON ({error}); expected a list of OpenAI chat messages") from error
    messages = parsed.get("messages") if isinstance(parsed, dict) else parsed
    tools = parsed.get("tools") if isinstance(parsed, dict) else None
    if not isinstance(messages, list) or not all(isinstance(message, dict) for message in messages):
        raise TranscriptError(
            f"{name}: found {type(parsed).__name__}, expected a list of message objects, or an object with messages"
        )
    return messages, tools


def _summarizer(config: Node) -> Summarizer | None:
    """Return the configured summarizer as ``lab.compact`` takes it."""
    node = config.get("summarizer")
    if not isinstance(node, dict):
        return None
    from compaction_lab.conversation.wire import from_openai
    from compaction_lab.models.base import ModelRequest
    from compaction_lab.models.registry import build_model

    model = build_model(node, role="summarizer")
    if model is None:
        return None
    limit = cast("Node", config["strategy"]).get("max_summary_tokens")

    def summarize(messages: list[dict[str, JSON]]) -> str:
        read = tuple(from_openai(message, f"messages[{at}]") for at, message in enumerate(messages))
        request = ModelRequest(read, "summarizer", max_output_tokens=limit if isinstance(limit, int) else None)
        reply = model(request)
        kind = "simulated summary by" if model.simulated else "summary by"
        print(f"{kind} {model.name}", file=sys.stderr)
        return reply.text

    return summarize

"""``options``: what can be chosen, read from the configuration files without composing them."""

from __future__ import annotations

import argparse
import json
import textwrap

from compaction_lab.commands.arguments import Parser, add_config_dir, add_json, verb
from compaction_lab.commands.text import WIDTH, definitions
from compaction_lab.configuration import ConfigurationFiles, configuration_files, did_you_mean
from compaction_lab.conversation.messages import JSON
from compaction_lab.errors import ConfigurationError
from compaction_lab.sweep.nodes import leaves, show

EXAMPLES = """\
  compaction-lab options
  compaction-lab options strategy
  compaction-lab options strategy/semantic_kernel/hybrid
"""


def register(verbs: argparse._SubParsersAction[Parser]) -> None:
    """Add the verb."""
    parser = verb(verbs, "options", "strategies, datasets, models, experiments with one line each", "", EXAMPLES)
    parser.add_argument("group", nargs="?", metavar="GROUP[/NAME]", help="one group, or one option with its parameters")
    add_config_dir(parser)
    add_json(parser)


def execute(args: argparse.Namespace) -> int:
    """List groups, a group's options, or an option's parameters."""
    files = configuration_files(args.config_dir)
    if args.group is None:
        chosen = {group: _described(files, group) for group in files.groups}
        print(
            json.dumps(chosen, indent=2) if args.json else "\n\n".join(f"{g}\n{_lines(o)}" for g, o in chosen.items())
        )
        return 0
    group, _, name = args.group.strip("/").partition("/")
    if group not in files.groups:
        every = [f"{each}/{option}" for each in files.groups for option in files.options(each)]
        hint = did_you_mean(group, files.groups) or did_you_mean(args.group, every)
        raise ConfigurationError(f"options {group}: no such group.{hint} There are {', '.join(files.groups)}.")
    if name and name not in files.options(group):
        inside = [each for each in files.options(group) if each.startswith(f"{name}/")]
        if not inside:
            files.require(group, name)
        described = {each: files.description(group, each) for each in inside}
        print(json.dumps(described, indent=2) if args.json else _lines(described))
    elif name:
        content = files.read(group, name)
        print(json.dumps(content, indent=2) if args.json else _one(files, group, name, content))
    else:
        described = _described(files, group)
        print(json.dumps(described, indent=2) if args.json else _lines(described))
    return 0


def _described(files: ConfigurationFiles, group: str) -> dict[str, str]:
    return {name: files.description(group, name) for name in files.options(group)}


def _lines(described: dict[str, str]) -> str:
    return definitions(described)


def _one(files: ConfigurationFiles, group: str, name: str, content: dict[str, JSON]) -> str:
    about = content.pop("about", None)
    notes = about if isinstance(about, dict) else {}
    meanings = notes.get("parameters")
    lines = [f"{group}={name}", *_wrapped(files.description(group, name), "  ")]
    for key, value in notes.items():
        if key not in {"description", "parameters"}:
            lines += _wrapped(f"{key}: {show(value)}", "    ", first="  ")
    parameters = {
        f"{group}.{key}={show(value)}": str(meanings.get(key) or "") if isinstance(meanings, dict) else ""
        for key, value in leaves(content)
        if key != "kind" and not (key == "defaults" and isinstance(value, list))
    }
    return "\n".join([*lines, definitions(parameters)])


def _wrapped(text: str, indent: str, first: str | None = None) -> list[str]:
    """Break a text's lines where they are longer than a terminal's, and nowhere else: some are code."""
    lines = []
    for number, line in enumerate(text.splitlines()):
        begin = (first if first is not None and not number else indent) + line[: len(line) - len(line.lstrip())]
        lines += textwrap.wrap(line, WIDTH, initial_indent=begin, subsequent_indent=indent, break_on_hyphens=False)
    return lines

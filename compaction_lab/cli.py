"""The command line: one verb a module of :mod:`compaction_lab.commands`, and what their errors and exits mean."""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Sequence

import compaction_lab
from compaction_lab.commands import (
    cache,
    compact,
    compare,
    export,
    import_sessions,
    list_runs,
    options,
    plan,
    probes,
    report,
    run,
    search,
    show,
    study,
)
from compaction_lab.commands.arguments import Parser
from compaction_lab.configuration import did_you_mean
from compaction_lab.conversation.printable import printable
from compaction_lab.errors import CompactionLabError

VERBS = {
    "plan": plan,
    "run": run,
    "list": list_runs,
    "show": show,
    "compare": compare,
    "search": search,
    "compact": compact,
    "study": study,
    "report": report,
    "export": export,
    "import": import_sessions,
    "probes": probes,
    "options": options,
    "cache": cache,
}
EXAMPLES = """\
examples:
  compaction-lab run experiment=laptop_catalog
  compaction-lab report laptop_catalog
  compaction-lab options strategy

`compaction-lab VERB --help` explains a verb.
Exit codes: 0 complete, 1 usage or configuration, 2 units still owed (errors), 130 interrupted."""
INTERRUPTED = 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; errors are one message on standard error."""
    words = list(sys.argv[1:] if argv is None else argv)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # transcripts hold anything, lone surrogates too
    try:
        args = _parse(words)
        return int(VERBS[args.verb].execute(args))
    except CompactionLabError as error:
        print(f"compaction-lab: {printable(str(error))}", file=sys.stderr)
        return error.exit_code
    except SystemExit as done:
        return done.code if isinstance(done.code, int) else 1
    except KeyboardInterrupt:
        again = f"; go on with\n  {run.resume_command(words)}" if words[:1] in (["run"], ["probes"]) else ""
        print(f"interrupted{again}", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:  # a full disk, a name too long, a folder that is a file
        where = f"{error.filename}: " if error.filename else "writing the output: "
        print(f"compaction-lab: {where}{error.strerror or error}", file=sys.stderr)
        return 1


def _parse(words: list[str]) -> argparse.Namespace:
    parser = Parser(
        prog="compaction-lab",
        description="Compare context-compaction strategies on recorded and live conversations, offline.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"compaction-lab {compaction_lab.__version__}")
    verbs = parser.add_subparsers(metavar="VERB", title="verbs", required=True, parser_class=Parser)
    for module in VERBS.values():
        module.register(verbs)
    if words and not words[0].startswith("-") and words[0] not in VERBS:
        parser.error(f"{words[0]!r} is no verb.{did_you_mean(words[0], VERBS)} Verbs: {', '.join(VERBS)}.")
    args, rest = parser.parse_known_args(words)
    # Overrides may stand before and after flags, which argparse alone does not allow.
    unknown = [word for word in rest if word.startswith("-") or not hasattr(args, "overrides")]
    if unknown:
        flags = [flag for action in verbs.choices[args.verb]._actions for flag in action.option_strings]  # noqa: SLF001
        hint = did_you_mean(unknown[0], flags) if unknown[0].startswith("-") else ""
        verbs.choices[args.verb].error(f"does not take {unknown[0]!r}.{hint}")
    if rest:
        args.overrides = [*args.overrides, *rest]
    args.argv = words
    return args


if __name__ == "__main__":
    sys.exit(main())

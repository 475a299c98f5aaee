"""Arguments that several verbs share, and the parser that exits with 1 when it is given what it cannot use."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import NoReturn

EXPERIMENTS = Path("experiments")
"""Where run folders lie, seen from the working directory."""


class Parser(argparse.ArgumentParser):
    """An argument parser that reports usage errors with exit code 1."""

    def error(self, message: str) -> NoReturn:
        """Print what is wrong and how to find out more, and exit."""
        print(f"{self.prog}: {message}\n`{self.prog} --help` shows what it takes", file=sys.stderr)
        raise SystemExit(1)


Verbs = "argparse._SubParsersAction[Parser]"


def verb(verbs: argparse._SubParsersAction[Parser], name: str, summary: str, text: str, examples: str) -> Parser:
    """Add a verb with its help: a summary, a paragraph and examples."""
    parser = verbs.add_parser(
        name,
        help=summary,
        description=f"{summary[0].upper()}{summary[1:]}.\n\n{text}".rstrip(),
        epilog=f"examples:\n{examples}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.set_defaults(verb=name)
    return parser


def add_grid_arguments(parser: Parser) -> None:
    """Add what describes a grid: overrides, --arm, --name, --config-dir and --on-error."""
    parser.add_argument("overrides", nargs="*", metavar="KEY=VALUE", help="overrides; a,b,c sweeps")
    parser.add_argument(
        "--arm",
        action="append",
        default=[],
        metavar="LINE",
        help='a further grid line: "strategy=summarization strategy.every=5,10" (repeatable)',
    )
    parser.add_argument("--name", help="name of the run (default: the experiment's, else the dataset's and six digits)")
    add_config_dir(parser)
    parser.add_argument(
        "--on-error",
        choices=("stop", "skip"),
        help="what to do with a record of a dataset that cannot be read (default: stop)",
    )
    parser.add_argument("-m", "--multirun", action="store_true", help=argparse.SUPPRESS)


def add_config_dir(parser: Parser) -> None:
    """Add --config-dir."""
    parser.add_argument(
        "--config-dir",
        action="append",
        default=[],
        metavar="DIR",
        help="a folder of your own configuration files, laid out like the lab's conf/ (repeatable)",
    )


def add_json(parser: Parser) -> None:
    """Add --json."""
    parser.add_argument("--json", action="store_true", help="print JSON for other programs")


def positive(text: str) -> int:
    """Read a whole number of at least 1."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected a whole number of at least 1, found {text!r}")
    return int(text)


def share(text: str) -> float:
    """Read a share between 0 and 1; ``5%`` is 0.05."""
    try:
        value = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        value = -1
    if not 0 <= value <= 1:
        raise argparse.ArgumentTypeError(f"expected a share between 0 and 1, or 5%, found {text!r}")
    return value


def dollars(text: str) -> float:
    """Read an amount of money."""
    try:
        value = float(text)
    except ValueError:
        value = -1
    if not value >= 0:
        raise argparse.ArgumentTypeError(f"expected an amount in US dollars, found {text!r}")
    return value

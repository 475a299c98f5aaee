"""Compare the lab with the frameworks that change content, on random cases; freeze answers for the test suite.

Runs in the lab's environment: ``content_fuzz.py FRAMEWORK --python PYTHON [-n N] [--start N] [--freeze FILE]`` compares
every strategy of a framework with its bridge; ``--run COMMAND`` names another bridge (``node ai_content.cjs``).
"""

from __future__ import annotations

import argparse
import json
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

from content_cases import STRATEGIES, case
from content_ours import ours
from tally import Tally, report

HERE = Path(__file__).parent
FROZEN_CASES, FROZEN_CHARACTERS, SHOWN = 15, 4_000, 2


def plain(answers: list[list[dict[str, Any]]]) -> list[list[dict[str, Any]]]:
    """Return answers without what only a bridge needs to remember."""
    return [[{key: value for key, value in row.items() if key != "kept"} for row in answer] for answer in answers]


def theirs(cases: list[dict[str, Any]], run: str) -> list[list[list[dict[str, Any]]]]:
    """Return what the framework answers."""
    sent = "".join(json.dumps(each, ensure_ascii=False) + "\n" for each in cases)
    done = subprocess.run(shlex.split(run), input=sent, capture_output=True, text=True, cwd=HERE, check=False)
    if done.returncode:
        sys.exit(done.stderr[-3000:])
    return [plain(json.loads(line)["answers"]) for line in done.stdout.splitlines()]


def main() -> int:
    """Compare every strategy of a framework, say what differs, freeze."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("framework", choices=sorted({framework for framework, _, _ in STRATEGIES.values()}))
    parser.add_argument("--python", default=sys.executable, help="the environment's interpreter")
    parser.add_argument("--run", help="the bridge's command, instead of the interpreter and the framework's bridge")
    parser.add_argument("-n", type=int, default=500, dest="count")
    parser.add_argument("--start", type=int, default=0)
    parser.add_argument("--freeze", type=Path)
    options = parser.parse_args()
    run = options.run or f"{options.python} {options.framework}_content.py"
    if options.freeze:
        options.freeze.unlink(missing_ok=True)
    names = [name for name, (framework, _, _) in STRATEGIES.items() if framework == options.framework]
    return report([compare(name, run, options) for name in names])


def compare(name: str, run: str, options: argparse.Namespace) -> Tally:
    """Compare one strategy."""
    cases = [case(name, seed) for seed in range(options.start, options.start + options.count)]
    answers = theirs(cases, run)
    tally = Tally(name, cases=len(cases))
    for each, answer in zip(cases, answers, strict=True):
        mine = ours(each)
        tally.acted += answer != [each["messages"][:stop] for stop in each["stops"]]
        if mine != answer:
            tally.differ += 1
            if tally.differ <= SHOWN:
                show(each, mine, answer)
    if options.freeze and not tally.differ:
        freeze(options.freeze, cases, answers)
    return tally


def freeze(file: Path, cases: list[dict[str, Any]], answers: list[list[list[dict[str, Any]]]]) -> None:
    """Append the smaller cases with their answers to a golden file; an unchanged message is written as its place."""
    file.parent.mkdir(parents=True, exist_ok=True)
    kept = 0
    with file.open("a", encoding="utf-8") as out:
        for each, answer in zip(cases, answers, strict=True):
            line = json.dumps(
                {**each, "answers": [packed(each["messages"], rows) for rows in answer]}, ensure_ascii=False
            )
            if kept < FROZEN_CASES and len(line) < FROZEN_CHARACTERS:
                kept += 1
                out.write(line + "\n")


def packed(messages: list[dict[str, Any]], rows: list[dict[str, Any]]) -> list[Any]:
    """Return rows with the place of the case's message in the place of each that is one, in order."""
    out: list[Any] = []
    at = 0
    for row in rows:
        found = next((place for place in range(at, len(messages)) if messages[place] == row), None)
        if found is None:
            out.append(row)
        else:
            out.append(found)
            at = found + 1
    return out


def show(each: dict[str, Any], mine: list[list[dict[str, Any]]], answer: list[list[dict[str, Any]]]) -> None:
    """Print where two answers part."""
    print(each["seed"], each["parameters"], each["stops"])
    for at, (left, right) in enumerate(zip(mine, answer, strict=False)):
        if left == right:
            continue
        print(f"  after {each['stops'][at]}: ours {len(left)} messages, theirs {len(right)}")
        for number, (one, other) in enumerate(zip(left, right, strict=False)):
            if one != other:
                print(f"  [{number}] ours   {str(one)[:300]}\n  [{number}] theirs {str(other)[:300]}")
                return
        return


if __name__ == "__main__":
    sys.exit(main())

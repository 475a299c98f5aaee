"""``probes``: questions about recorded sessions, proposed by a model or by rule, kept only with evidence that holds."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

from compaction_lab.commands.arguments import Parser, add_config_dir, add_json, dollars, positive, verb
from compaction_lab.commands.single import single_configuration
from compaction_lab.commands.text import count
from compaction_lab.errors import BudgetReached, ConfigurationError, ModelError, StoreError

if TYPE_CHECKING:
    from compaction_lab.conversation.transcript import Transcript
    from compaction_lab.quality.probe_writing import Proposals
    from compaction_lab.sweep.nodes import Node
    from compaction_lab.sweep.progress import Progress

    Propose = Callable[[Transcript], Proposals]

EXAMPLES = """\
  compaction-lab probes session.jsonl --out probed.jsonl
  compaction-lab probes logs/*.jsonl --out probed.jsonl --count 20 --kinds recall,decision \\
      model=openai_compatible model.model=gpt-5-mini --max-cost 1
  compaction-lab run dataset.path=probed.jsonl strategy=sliding_window strategy.keep_last=2,4
"""
TEXT = """\
Reads sessions of any known format and writes them, with the probes found, in the lab's own, which run takes as a
dataset. Kinds: recall (a fact), artifact (a file that was read or changed), decision, continuation (what is left to
do), constraint (a rule the user set). Without model= a rule takes values out of sentences; with it the model proposes
and the session is sent to it. Either way a proposal is kept only if its evidence stands verbatim in the message it
names and contains the answer, and the question does not give the answer away; the others are counted by reason.

A model's answers are in the response cache: the same command again, also after an interrupt, asks only for the rest.
Exit codes: 0 complete, 1 usage or configuration, 2 sessions left out because their model calls failed."""
KINDS = ("recall", "artifact", "decision", "continuation", "constraint")


def register(verbs: argparse._SubParsersAction[Parser]) -> None:
    """Add the verb."""
    parser = verb(verbs, "probes", "questions about sessions, proposed with evidence that is checked", TEXT, EXAMPLES)
    parser.add_argument(
        "overrides",
        nargs="+",
        metavar="FILE|KEY=VALUE",
        help="sessions or folders of them; model=... and its parameters",
    )
    parser.add_argument("--out", required=True, type=Path, metavar="FILE", help="the sessions with their probes")
    parser.add_argument("--count", type=positive, default=10, metavar="N", help="probes to ask for a session (10)")
    parser.add_argument("--kinds", type=_kinds, default=KINDS, metavar="LIST", help=f"some of {','.join(KINDS)}")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="passed to the model (0)")
    parser.add_argument("--format", metavar="NAME", help="the sessions' format (default: told from the content)")
    parser.add_argument("--on-error", choices=("stop", "skip"), default="stop", help="at a bad record (default: stop)")
    parser.add_argument("--max-cost", type=dollars, metavar="USD", help="stop before the call that could cost more")
    parser.add_argument("-q", "--quiet", action="store_true", help="no progress")
    parser.add_argument("-v", "--verbose", action="store_true", help="print every probe with its evidence")
    add_config_dir(parser)
    add_json(parser)


def execute(args: argparse.Namespace) -> int:
    """Propose, check, write, and say what was kept and why the rest was not."""
    from compaction_lab.importers.lab import write_transcripts
    from compaction_lab.sweep.progress import Progress

    files = [word for word in args.overrides if "=" not in word or Path(word).exists()]
    args.overrides = [word for word in args.overrides if word not in files]
    sessions = list(_sessions(files, args))
    progress = Progress(len(sessions), sys.stderr, quiet=args.quiet, noun="sessions")
    found: list[tuple[Transcript, Proposals]] = []
    with _proposing(args) as (writer, propose):
        stopped = _ask(sessions, propose, found, progress)
    probed = [
        replace(session, probes=(*session.probes, *proposals.kept), meta={**session.meta, "probes_by": writer})
        for session, proposals in found
    ]
    if probed:
        write_transcripts(args.out, probed)
    print(_as_json(args, writer, found) if args.json else _as_text(args, writer, found))
    if stopped:
        print(f"stopped: {stopped}", file=sys.stderr)
    left = len(sessions) - len(found)
    if left:
        print(f"{count(left, 'session')} left out; the same command again asks for the rest only", file=sys.stderr)
    return 2 if left else 0


def _sessions(files: list[str], args: argparse.Namespace) -> Iterator[Transcript]:
    from compaction_lab.importers.load import read_transcripts

    if not files:
        raise ConfigurationError("probes: which sessions? Give a file, or a folder of them")
    for name in files:
        path = Path(name)
        if path.resolve() == args.out.resolve():
            raise StoreError(f"--out {args.out}: it would overwrite what is being read; choose another file")
        transcripts, report = read_transcripts(path, format=args.format, on_error=args.on_error)
        for skipped in report.skipped:
            print(f"skipped {skipped.where}: {skipped.reason}", file=sys.stderr)
        yield from transcripts


def _ask(
    sessions: list[Transcript], propose: Propose, found: list[tuple[Transcript, Proposals]], progress: Progress
) -> str:
    """Ask for every session's probes; return why it stopped early, or nothing."""
    try:
        for session in sessions:
            try:
                found.append((session, propose(session)))
                progress.unit(session.id)
            except BudgetReached as error:
                return str(error)
            except ModelError as error:
                progress.unit(session.id, error=str(error))
    finally:
        progress.close()
    return ""


@contextmanager
def _proposing(args: argparse.Namespace) -> Iterator[tuple[str, Propose]]:
    """Yield who proposes probes, by name, and a function that does."""
    from compaction_lab.models.budget import ENVIRONMENT, Budget
    from compaction_lab.models.registry import build_model, told
    from compaction_lab.quality.probe_writing import checked, propose_probes
    from compaction_lab.quality.probe_writing_rules import cloze_probes
    from compaction_lab.sweep.endpoints import endpoint_price

    config, given = single_configuration(args, {"model", "pricing"}, "probes takes model=, its parameters and pricing")
    if "model" not in given:
        yield "rule", lambda session: checked(cloze_probes(session, args.count, args.kinds), session, args.kinds)
        return
    node = _endpoint_node(config)
    price = endpoint_price(node, config)
    if args.max_cost is not None and price is None:
        raise ConfigurationError("--max-cost: no price is known for this model; name one with model.priced_as=NAME")
    with tempfile.TemporaryDirectory(prefix="compaction-lab-") as folder:
        limits: dict[str, str] = {}
        if args.max_cost is not None:
            limits[ENVIRONMENT] = Budget.start(Path(folder) / "budget.sqlite", args.max_cost).announce()
        with told(limits):
            model = build_model(node, role="reader", price=price)
            assert model is not None  # noqa: S101 - an endpoint always is one
            yield (
                model.name,
                lambda session: propose_probes(session, model, count=args.count, kinds=args.kinds, seed=args.seed),
            )


def _endpoint_node(config: Node) -> Node:
    from compaction_lab.models.registry import check_model, is_endpoint
    from compaction_lab.sweep.cells import require_values

    node = config.get("model")
    if not isinstance(node, dict) or not is_endpoint(node, "reader"):
        raise ConfigurationError(
            "probes: a model must be asked over an endpoint: model=openai_compatible model.model=NAME; without model= "
            "the rule proposes"
        )
    require_values({"model": node})
    check_model(node, "agent")
    return node


def _kinds(text: str) -> tuple[str, ...]:
    chosen = tuple(kind.strip() for kind in text.split(",") if kind.strip())
    unknown = [kind for kind in chosen if kind not in KINDS]
    if unknown or not chosen:
        raise argparse.ArgumentTypeError(f"expected some of {', '.join(KINDS)}, found {text!r}")
    return chosen


def _as_text(args: argparse.Namespace, writer: str, found: list[tuple[Transcript, Proposals]]) -> str:
    kept = [(session, probe) for session, proposals in found for probe in proposals.kept]
    kinds = Counter(probe.kind for _, probe in kept)
    listed = ", ".join(f"{kinds[kind]} {kind}" for kind in args.kinds if kinds[kind])
    target = args.out if found else "nothing written"
    by = "by rule" if writer == "rule" else f"by {writer}"
    lines = [
        f"{target}: {count(len(found), 'session')}, {count(len(kept), 'probe')} proposed {by} and kept"
        + (f" ({listed})" if listed else "")
    ]
    reasons = sum((proposals.reasons for _, proposals in found), Counter[str]())
    if reasons:
        lines.append(f"  {count(reasons.total(), 'proposal')} rejected:")
        lines += [f"  {number} x {reason}" for reason, number in reasons.most_common()]
    if args.verbose:
        for session, probe in kept:
            lines.append(f"{session.id} {probe.id} ({probe.kind}, message {probe.source_message})")
            lines += [f"  asks: {probe.question}", f"  gold: {probe.gold[0]}", f"  from: {probe.evidence[0]}"]
    return "\n".join(lines)


def _as_json(args: argparse.Namespace, writer: str, found: list[tuple[Transcript, Proposals]]) -> str:
    sessions = [{"session": session.id, **asdict(proposals)} for session, proposals in found]
    return json.dumps({"file": str(args.out) if found else None, "by": writer, "sessions": sessions}, indent=2)

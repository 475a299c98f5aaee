"""How well references are found: a kit to label recorded sessions by hand, twice, and to score the finder against it.

    python benchmarks/label_references.py show SESSIONS... --out DIR      # moments to label, with instructions
    python benchmarks/label_references.py store DIR LABELS.tsv --out FIRST.jsonl
    python benchmarks/label_references.py agree FIRST.jsonl SECOND.jsonl
    python benchmarks/label_references.py score FIRST.jsonl SECOND.jsonl --sessions SESSIONS...

Whoever labels reads the instructions and the moments, never the finder or what it found. Labels keep places, offsets
and hashes, no text; the moments themselves stay where the sessions are and do not belong into a repository.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from compaction_lab.conversation.tokens import TokenCounter, tokenizer
from compaction_lab.conversation.transcript import Transcript
from compaction_lab.importers import load_transcripts
from compaction_lab.quality.evidence import searchable
from compaction_lab.quality.references import ReferenceRules, references

EARLIEST = 6
"""Messages that precede a moment at least: before, nothing can be old."""

INSTRUCTIONS = """\
Each file holds a conversation up to one message of the agent, which stands last under AGENT'S MESSAGE. Messages are
numbered. List every specific value in the agent's message (in its text or in the arguments of its tool calls) that it
took from an earlier message. A value counts when all of this is true:

1. It is specific: an identifier, code, path, file, address, number or amount, date, name of a person, place or product,
   or a quoted string. Not plain words, not yes or no, not a name of a field.
2. It stands, letter by letter (numbers: with or without thousands separators), in an earlier message.
3. The first message that says it is the user's or a tool's result: not the agent's own, not the system message and not
   a tool definition.
4. None of the {recent} messages directly before the agent's message says it: it had to be remembered from further back.

Write one line a value into labels.tsv: number of the moment, a tab, the value exactly as the agent's message writes it,
a tab, the number of the first message that says it. The longest string that was taken over as a whole is one value. A
value that occurs several times in the agent's message is one line. A moment without any value gets one line with the
number alone. When in doubt whether a value is specific, ask: had the agent forgotten it, would it have to look it up?
"""


@dataclass(frozen=True, slots=True)
class Label:
    """One labelled value, or a moment without any (``sha256`` empty). Places are characters of searchable text."""

    file: str
    transcript: str
    message: int
    sha256: str = ""
    start: int = 0
    end: int = 0
    source_message: int = -1
    source_start: int = 0
    source_end: int = 0

    @property
    def moment(self) -> tuple[str, str, int]:
        """The agent's message it belongs to."""
        return self.file, self.transcript, self.message


def sessions(paths: Iterable[Path]) -> dict[tuple[str, str], Transcript]:
    """Return the transcripts of files by file name and id."""
    return {(path.name, transcript.id): transcript for path in paths for transcript in load_transcripts(path)}


def sampled(known: dict[tuple[str, str], Transcript], count: int, seed: int) -> list[tuple[str, str, int]]:
    """Draw moments: sessions in turn, so that long ones do not fill the sample."""
    draw = random.Random(seed)  # noqa: S311 - a seeded sample
    queues = []
    for (file, name), transcript in known.items():
        places = [
            index
            for index, message in enumerate(transcript.messages)
            if message.role == "assistant"
            and message.source == "recorded"
            and index >= EARLIEST
            and searchable(message)
        ]
        draw.shuffle(places)
        queues.append([(file, name, index) for index in places])
    draw.shuffle(queues)
    found: list[tuple[str, str, int]] = []
    while len(found) < count and any(queues):
        found += [queue.pop() for queue in queues if queue]
    return found[:count]


def show(args: argparse.Namespace) -> int:
    """Write the moments, the instructions and an empty list of labels."""
    known = sessions(args.sessions)
    out: Path = args.out
    out.mkdir(parents=True, exist_ok=True)
    rows = []
    for number, (file, name, index) in enumerate(sampled(known, args.moments, args.seed), start=1):
        transcript = known[file, name]
        parts = (
            [f"TOOLS\n{json.dumps([asdict(tool) for tool in transcript.tools], indent=1)}\n"]
            if transcript.tools
            else []
        )
        parts += [f"[{at}] {m.role}\n{searchable(m)}\n" for at, m in enumerate(transcript.messages[:index])]
        parts.append(f"AGENT'S MESSAGE [{index}]\n{searchable(transcript.messages[index])}\n")
        (out / f"moment-{number:03d}.txt").write_text("\n".join(parts), encoding="utf-8", errors="backslashreplace")
        rows.append({"moment": number, "file": file, "transcript": name, "message": index})
    (out / "moments.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    recent = ReferenceRules().recent_messages
    (out / "instructions.txt").write_text(INSTRUCTIONS.format(recent=recent), encoding="utf-8")
    (out / "sessions.txt").write_text("".join(f"{path.resolve()}\n" for path in args.sessions), encoding="utf-8")
    print(f"{len(rows)} moments of {len({row['transcript'] for row in rows})} sessions in {out}; read instructions.txt")
    return 0


def store(args: argparse.Namespace) -> int:
    """Turn written labels into places and hashes; say which lines do not fit the messages."""
    folder: Path = args.folder
    paths = [Path(line) for line in (folder / "sessions.txt").read_text(encoding="utf-8").splitlines()]
    known = sessions(paths)
    moments = {row["moment"]: row for row in map(json.loads, (folder / "moments.jsonl").open(encoding="utf-8"))}
    labels: list[Label] = []
    wrong = 0
    for number, line in enumerate(args.labels.read_text(encoding="utf-8").splitlines(), start=1):
        fields = line.split("\t")
        if not fields[0].strip().isdigit():
            continue
        row = moments[int(fields[0])]
        place = (row["file"], row["transcript"], row["message"])
        if len(fields) < 3 or not fields[1]:  # noqa: PLR2004 - moment, value, source
            labels.append(Label(*place))
            continue
        label = _label(place, fields[1], int(fields[2]), known[place[:2]])
        if isinstance(label, str):
            wrong += 1
            print(f"{args.labels}:{number}: {label}", file=sys.stderr)
        else:
            labels.append(label)
    args.out.write_text("".join(json.dumps(asdict(label)) + "\n" for label in labels), encoding="utf-8")
    print(f"{len(labels)} labels in {args.out}, {wrong} lines that do not fit")
    return 1 if wrong else 0


def _label(place: tuple[str, str, int], value: str, source: int, transcript: Transcript) -> Label | str:
    used, said = searchable(transcript.messages[place[2]]), searchable(transcript.messages[source])
    start, other = used.find(value), said.find(value)
    if other < 0:
        plain = value.replace(",", "")
        other = said.find(plain)
        value_there = plain
    else:
        value_there = value
    if start < 0 or other < 0:
        return f"{value!r} does not stand in {'the agent message' if start < 0 else f'message {source}'}"
    digest = hashlib.sha256(value.encode("utf-8", "surrogatepass")).hexdigest()
    return Label(*place, digest, start, start + len(value), source, other, other + len(value_there))


def read(path: Path) -> list[Label]:
    """Return stored labels."""
    return [Label(**json.loads(line)) for line in path.read_text(encoding="utf-8").splitlines()]


def matched(one: Sequence[tuple[int, int]], other: Sequence[tuple[int, int]]) -> int:
    """Return how many spans of ``one`` overlap a span of ``other``."""
    return sum(any(start < end2 and start2 < end for start2, end2 in other) for start, end in one)


def spans(labels: Iterable[Label], moment: tuple[str, str, int]) -> list[tuple[int, int]]:
    """Return where the values of one moment stand."""
    return [(label.start, label.end) for label in labels if label.moment == moment and label.sha256]


def agree(args: argparse.Namespace) -> int:
    """Print how far two labellers agree on the moments both labelled."""
    first, second = read(args.first), read(args.second)
    shared = {label.moment for label in first} & {label.moment for label in second}
    pairs = [(spans(first, moment), spans(second, moment)) for moment in sorted(shared)]
    ones, twos = (sum(len(pair[side]) for pair in pairs) for side in (0, 1))
    both = sum(matched(one, two) for one, two in pairs)
    back = sum(matched(two, one) for one, two in pairs)
    same = sum(matched(one, two) == len(one) and matched(two, one) == len(two) for one, two in pairs)
    print(f"{len(pairs)} moments; values: {ones} and {twos}; of the first's {both} are the second's, back {back}")
    print(f"specific agreement (both / mean): {(both + back) / max(1, ones + twos):.3f}; equal moments: {same}")
    return 0


def score(args: argparse.Namespace) -> int:
    """Print precision and recall of the finder against each labeller."""
    known = sessions(args.sessions)
    counter = TokenCounter(tokenizer("characters"))
    found: dict[tuple[str, str, int], list[tuple[int, int]]] = {}
    for (file, name), transcript in known.items():
        for uses in references(transcript.log, transcript.tools, counter, ReferenceRules(most_per_call=1000)).values():
            for one in uses:
                found.setdefault((file, name, one.use.message), []).append((one.use.start, one.use.end))
    for path in args.labels:
        labels = read(path)
        moments = sorted({label.moment for label in labels})
        wanted = [spans(labels, moment) for moment in moments]
        given = [found.get(moment, []) for moment in moments]
        right = sum(matched(mine, theirs) for mine, theirs in zip(given, wanted, strict=True))
        caught = sum(matched(theirs, mine) for mine, theirs in zip(given, wanted, strict=True))
        ours, all_labels = sum(map(len, given)), sum(map(len, wanted))
        print(
            f"{path}: {len(moments)} moments, {all_labels} labelled, {ours} found; "
            f"precision {right / max(1, ours):.3f} ({right}/{ours}), "
            f"recall {caught / max(1, all_labels):.3f} ({caught}/{all_labels})"
        )
    return 0


def main() -> int:
    """Run one step of the kit."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    steps = parser.add_subparsers(required=True)
    step = steps.add_parser("show")
    step.add_argument("sessions", nargs="+", type=Path)
    step.add_argument("--out", type=Path, required=True)
    step.add_argument("--moments", type=int, default=60)
    step.add_argument("--seed", type=int, default=0)
    step.set_defaults(run=show)
    step = steps.add_parser("store")
    step.add_argument("folder", type=Path)
    step.add_argument("labels", type=Path)
    step.add_argument("--out", type=Path, required=True)
    step.set_defaults(run=store)
    step = steps.add_parser("agree")
    step.add_argument("first", type=Path)
    step.add_argument("second", type=Path)
    step.set_defaults(run=agree)
    step = steps.add_parser("score")
    step.add_argument("labels", nargs="+", type=Path)
    step.add_argument("--sessions", nargs="+", type=Path, required=True)
    step.set_defaults(run=score)
    args = parser.parse_args()
    return int(args.run(args))


if __name__ == "__main__":
    sys.exit(main())

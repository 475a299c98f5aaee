"""Probes that a model proposes from a session: each is kept with the words it cites, or rejected with the reason.

What is kept can be trusted without the model: the evidence stands verbatim in the message it names, contains the
answer, and the question does not give it away.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from compaction_lab.conversation.messages import JSON, system, user
from compaction_lab.conversation.transcript import Probe, Transcript
from compaction_lab.errors import ContextOverflow
from compaction_lab.models.base import Model, ModelRequest
from compaction_lab.quality.evidence import searchable
from compaction_lab.quality.fencing import NOTICE, fenced
from compaction_lab.quality.judges import subspan
from compaction_lab.quality.verdicts import read_objects

KINDS: Mapping[str, str] = {
    "recall": "a fact that was stated (a name, a number, an error message)",
    "artifact": "a file, a table or another thing that was read, made or changed",
    "decision": "what was decided, or why",
    "continuation": "what is left to do",
    "constraint": "a rule that the user set",
}
"""What a probe may test, after Factory.ai's evaluation of context compression (December 2025), and standing rules."""

PORTION_CHARACTERS = 24_000
"""Longest piece of a session shown at a time."""

LONGEST_ANSWER = 120
_NAME, _NAME_DIGITS = "proposed-", 3

_TASK = """\
You write questions that test whether somebody still knows a conversation. {notice}
Write {count} questions about the messages shown, of these kinds:
{kinds}
Each answer is a few words copied from one message, and the question does not contain it. Prefer what later work \
would need over small talk.
Answer with one JSON object and nothing else:
{{"probes": [{{"kind": "recall", "question": "...", "answer": "...", "message": 12, "evidence": "..."}}]}}
"message" is its number, "evidence" a sentence or line of it, copied exactly, that contains the answer."""


@dataclass(frozen=True, slots=True)
class Rejected:
    """A proposal that was not kept, as the model wrote it, and why."""

    proposal: str
    reason: str


@dataclass(frozen=True, slots=True)
class Proposals:
    """What came of proposed probes."""

    kept: tuple[Probe, ...]
    rejected: tuple[Rejected, ...]

    @property
    def reasons(self) -> Counter[str]:
        """How many were rejected, by reason."""
        return Counter(each.reason for each in self.rejected)


def propose_probes(
    transcript: Transcript, model: Model, *, count: int = 10, kinds: Sequence[str] = tuple(KINDS), seed: int = 0
) -> Proposals:
    """Ask a model for probes of a session, portion by portion, and keep those that hold.

    Parameters
    ----------
    transcript
        The session.
    model
        Who proposes.
    count
        How many to ask for in all, spread over the portions.
    kinds
        Which kinds; see :data:`KINDS`.
    seed
        Passed to the model.

    Raises
    ------
    ModelError
        The model could not be asked.
    """
    portions = list(_portions(transcript))
    proposals: list[Mapping[str, JSON] | Rejected] = []
    for number, portion in enumerate(portions):
        asked = count * (number + 1) // len(portions) - count * number // len(portions)
        if not asked:
            continue
        try:
            reply = model(_request(portion, asked, kinds, seed))
        except ContextOverflow as error:
            proposals.append(Rejected("", f"a portion of the session does not fit the model: {error}"))
            continue
        found = list(_proposals(reply.text))
        proposals += found or [Rejected(reply.text, "the answer holds no JSON object with a list of probes")]
    return checked(proposals, transcript, kinds)


def checked(
    proposals: Iterable[Mapping[str, JSON] | Rejected], transcript: Transcript, kinds: Sequence[str] = tuple(KINDS)
) -> Proposals:
    """Keep the proposals that hold, whoever made them.

    Parameters
    ----------
    proposals
        Mappings of ``kind, question, answer, message`` (an index) and ``evidence``, or what was rejected before.
    transcript
        The session they are about.
    kinds
        Which kinds are wanted.
    """
    kept: list[Probe] = []
    rejected: list[Rejected] = []
    for proposal in proposals:
        found = proposal if isinstance(proposal, Rejected) else _checked(proposal, transcript, kinds, kept)
        if isinstance(found, Probe):
            kept.append(found)
        else:
            rejected.append(found if isinstance(found, Rejected) else Rejected(str(proposal), found))
    return Proposals(tuple(kept), tuple(rejected))


def _portions(transcript: Transcript) -> Iterator[dict[str, str]]:
    """Yield messages by name in pieces of bounded length; a longer message is cut into several."""
    portion: dict[str, str] = {}
    size = 0
    for index, message in enumerate(transcript.messages):
        text = searchable(message)
        for start in range(0, len(text), PORTION_CHARACTERS):
            piece = text[start : start + PORTION_CHARACTERS]
            if portion and size + len(piece) > PORTION_CHARACTERS:
                yield portion
                portion, size = {}, 0
            portion[f"message {index} {message.role}"] = piece
            size += len(piece)
    if portion:
        yield portion


def _request(portion: Mapping[str, str], count: int, kinds: Sequence[str], seed: int) -> ModelRequest:
    listed = "\n".join(f"- {kind}: {KINDS[kind]}" for kind in kinds)
    task = _TASK.format(notice=NOTICE, count=count, kinds=listed)
    return ModelRequest((system(task), user(fenced(portion))), "probe", seed=seed)


def _proposals(text: str) -> Iterator[Mapping[str, JSON]]:
    for found in read_objects(text):
        listed = found.get("probes", [found] if "question" in found else None)
        if isinstance(listed, list):
            yield from (each for each in listed if isinstance(each, Mapping))


def _checked(
    proposal: Mapping[str, JSON], transcript: Transcript, kinds: Sequence[str], kept: Sequence[Probe]
) -> Probe | str:
    """Return the probe that a proposal is, or why it is none."""
    kind, question, answer, evidence = (
        str(proposal.get(name) or "").strip() for name in ("kind", "question", "answer", "evidence")
    )
    at = proposal.get("message")
    if kind not in kinds:
        return f"its kind is none of {', '.join(kinds)}"
    if not question or not answer or not evidence or len(answer) > LONGEST_ANSWER:
        return f"it lacks a question, an answer of at most {LONGEST_ANSWER} characters, or evidence"
    if isinstance(at, bool) or not isinstance(at, int) or not 0 <= at < len(transcript.messages):
        return "it names no message of the session"
    if evidence not in searchable(transcript.messages[at]):
        return "the evidence does not stand in the message it names"
    if not subspan(evidence, (answer,)):
        return "the evidence does not contain the answer"
    if subspan(answer, (answer,), question) is None:
        return "the question gives the answer away"
    earlier = [*transcript.probes, *kept]
    if any(probe.question == question or (probe.gold == (answer,) and probe.source_message == at) for probe in earlier):
        return "the same was asked before"
    number = sum(probe.id.startswith(_NAME) for probe in transcript.probes) + len(kept)
    name = f"{_NAME}{number:0{_NAME_DIGITS}d}"
    return Probe(name, kind, question, (answer,), (evidence,), source_message=at)

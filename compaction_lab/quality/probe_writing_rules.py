"""Probes written without a model: a sentence of the session with a value taken out, which is to be put back.

A rule sees forms, not sense: it takes what looks specific (a path, a number, an identifier, a name, a quotation) and
tells the kind of a probe by cue words. Good for checking a pipeline and for what can be looked up verbatim; a model
writes better questions.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from compaction_lab.conversation.messages import JSON
from compaction_lab.conversation.transcript import Transcript
from compaction_lab.quality.judges import subspan
from compaction_lab.quality.mentions import in_text

GAP = "____"
_SENTENCE = re.compile(r"[^\n.!?]+(?:[.!?](?!\s|$)[^\n.!?]*)*[.!?]?")
_SHORTEST, _LONGEST = 20, 240
_LONGEST_VALUE = 60
_WORD, _WORDS_AROUND = re.compile(r"[^\W\d_]{2,}"), 4

_CUES: Mapping[str, re.Pattern[str]] = {
    kind: re.compile(rf"\b(?:{words})\b", re.IGNORECASE)
    for kind, words in {
        "constraint": r"never|always|must(?: not)?|do not|don't|only|at (?:most|least)|no more than|make sure",
        "decision": r"decided?|chose|choose|(?:let's|let us|I'll|we'll) (?:use|go)|instead of|switch(?:ed)? to",
        "continuation": r"next step|remaining|still (?:need|have|to)|left to|to-?do|afterwards|follow-up",
        "artifact": r"creat\w+|wrote|edit\w*|chang\w+|modif\w+|add(?:ed|ing)|delet\w+|renam\w+|sav(?:ed|ing)|patch\w*",
    }.items()
}
_NAMED = frozenset({"path", "identifier", "address", "quoted"})


def cloze_probes(transcript: Transcript, count: int, kinds: Sequence[str]) -> list[Mapping[str, JSON]]:
    """Return up to ``count`` proposals, as a model would make them, spread over the kinds and over the session.

    Parameters
    ----------
    transcript
        The session; system and developer messages are not asked about.
    count
        How many at most.
    kinds
        Which kinds (:data:`compaction_lab.quality.probe_writing.KINDS`).
    """
    found: defaultdict[str, list[Mapping[str, JSON]]] = defaultdict(list)
    for proposal in _candidates(transcript):
        found[str(proposal["kind"])].append(proposal)
    present = [kind for kind in kinds if found[kind]]
    shares = dict.fromkeys(present, 0)
    while sum(shares.values()) < min(count, sum(len(found[kind]) for kind in present)):
        least = min((kind for kind in present if shares[kind] < len(found[kind])), key=lambda kind: shares[kind])
        shares[least] += 1
    chosen = [proposal for kind, share in shares.items() for proposal in _spread(found[kind], share)]
    return sorted(chosen, key=lambda proposal: (str(proposal["message"]).zfill(9), str(proposal["evidence"])))


def _candidates(transcript: Transcript) -> Iterator[Mapping[str, JSON]]:
    """Yield every sentence that says something specific, once for each value and each wording around it."""
    seen: set[str] = set()
    for index, message in enumerate(transcript.messages):
        if message.role in ("system", "developer"):
            continue
        for match in _SENTENCE.finditer(message.text):
            sentence = match[0].strip()
            chosen = _chosen(sentence, message.role) if _SHORTEST <= len(sentence) <= _LONGEST else None
            if chosen is None:
                continue
            kind, value = chosen
            question = f"What stands in the gap? {sentence.replace(value, GAP)}"
            if not {value, question} & seen and subspan(value, (value,), question) is not None:
                yield {"kind": kind, "question": question, "answer": value, "message": index, "evidence": sentence}
            seen |= {value, question}


def _chosen(sentence: str, role: str) -> tuple[str, str] | None:
    """Return the kind of probe that a sentence makes and the value to ask for, if it says something specific.

    That is the last value it says once, with words around: news tends to stand at the end.
    """
    fitting = [
        mention
        for mention in in_text(sentence)
        if len(mention.value) <= _LONGEST_VALUE
        and sentence.count(mention.value) == 1
        and len(_WORD.findall(sentence.replace(mention.value, " "))) >= _WORDS_AROUND
    ]
    if not fitting:
        return None
    named = [mention for mention in fitting if mention.kind in _NAMED]
    for kind, cue in _CUES.items():
        possible = (named if kind == "artifact" else fitting) and (role == "user" or kind != "constraint")
        if possible and role != "tool" and cue.search(sentence):
            return kind, (named if kind == "artifact" else fitting)[-1].value
    return "recall", fitting[-1].value


def _spread(proposals: Sequence[Mapping[str, JSON]], share: int) -> Iterator[Mapping[str, JSON]]:
    for number in range(share):
        yield proposals[(2 * number + 1) * len(proposals) // (2 * share)]

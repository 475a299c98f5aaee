"""Retrieval tasks: the answer stands where it should, nothing else answers, and equal seeds give equal texts."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from compaction_lab.errors import ConfigurationError
from compaction_lab.quality.judges import subspan
from compaction_lab.scenarios.retrieval import retrieval_transcripts

NODE = {"items": 20, "examples": 6, "places": 5, "shown": "full", "source": "own", "seed": 0}


def made(task: str, **changed: object) -> list[object]:
    return retrieval_transcripts({"task": task, **NODE, **changed})


@pytest.mark.parametrize("items", [75, 140, 300])
def test_a_pair_stands_at_each_of_its_places(items: int) -> None:
    transcripts = made("key_value", items=items)
    assert len(transcripts) == 30
    for transcript in transcripts:
        (probe,) = transcript.probes
        pairs = json.loads(transcript.messages[1].text)
        assert len(pairs) == items
        index = int(transcript.id.partition("@")[2])
        assert probe.id == f"at-{index}-of-{items}"
        assert list(pairs.values())[index] == probe.gold[0]
        assert list(pairs)[index] in probe.question
        assert probe.evidence[0] in transcript.messages[1].text


def check_documents(transcripts: list[object], items: int) -> None:
    for transcript in transcripts:
        (probe,) = transcript.probes
        documents = transcript.messages[1].text.split("\n\nDocument ")
        assert len(documents) == items
        index = int(transcript.id.partition("@")[2])
        answering = [at for at, text in enumerate(documents) if subspan(text, probe.gold)]
        assert answering == [index]


def test_one_document_answers_and_the_others_are_alike_but_do_not() -> None:
    transcripts = made("multi_document")
    assert len(transcripts) == 30
    check_documents(transcripts, 20)
    # BM25 brings the other passages on the same building near the top.
    (probe,) = transcripts[0].probes
    town = probe.question.rstrip("?").split(" of ")[1].split()[0]
    assert transcripts[0].messages[1].text.count(town) > probe.evidence[0].count(town)


@pytest.mark.parametrize("task", ["key_value", "multi_document"])
def test_oracle_and_closed_book_are_asked_once(task: str) -> None:
    for shown, items in (("oracle", 1), ("none", 0)):
        transcripts = made(task, shown=shown)
        assert len(transcripts) == 6
        assert {transcript.probes[0].id for transcript in transcripts} == {f"at-0-of-{items}"}
        assert {len(transcript.messages) for transcript in transcripts} == {1 + items}
    assert made(task) == made(task)
    assert made(task) != made(task, seed=1)


def test_the_public_data_gives_the_same_tasks(public_data: Callable[[str], Path]) -> None:
    public_data("published/lost_in_the_middle/nq-open-oracle.jsonl.gz")
    pairs = made("key_value", items=75, source="public", examples=2)
    assert len(json.loads(pairs[0].messages[1].text)) == 75
    asked = [
        transcript
        for transcript in made("multi_document", items=10, places=3, source="public")
        if subspan(transcript.messages[1].text, transcript.probes[0].gold, transcript.probes[0].question) is not None
    ]
    check_documents(asked, 10)


def test_mistakes_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for changed, word in (
        ({"items": 0}, "items"),
        ({"shown": "some"}, "oracle"),
        ({"source": "web"}, "public"),
        ({"examples": 1000}, "240 passages"),
    ):
        with pytest.raises(ConfigurationError, match=word):
            made("multi_document", **changed)
    with pytest.raises(ConfigurationError, match="key_value"):
        made("chess")
    monkeypatch.delenv("COMPACTION_LAB_DATA", raising=False)
    with pytest.raises(ConfigurationError, match="COMPACTION_LAB_DATA"):
        made("key_value", items=75, source="public")

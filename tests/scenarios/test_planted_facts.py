"""Planted facts leave a conversation's shape alone, can be found, and are the same for the same seed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction_lab.conversation.messages import Message, ToolCall, assistant, system, tool, user
from compaction_lab.conversation.transcript import Transcript
from compaction_lab.errors import ConfigurationError
from compaction_lab.importers.lab import transcript_line
from compaction_lab.quality.evidence import searchable
from compaction_lab.scenarios.planted_facts import KINDS, plant, plant_from


def coding(steps: int) -> Transcript:
    messages: list[Message] = [system("Code well."), user("Fix it.")]
    for step in range(steps):
        messages += [assistant("", ToolCall(f"c{step}", "read", "{}")), tool(f"c{step}", f"file {step}")]
    return Transcript("coding", (*messages, assistant("Done.")))


@given(st.integers(1, 60), st.integers(0, 5), st.integers(1, 40))
def test_the_conversation_keeps_its_shape_and_every_probe_its_evidence(facts: int, seed: int, steps: int) -> None:
    before = coding(steps)
    after = plant(before, facts=facts, seed=seed)
    assert len(after.messages) == len(before.messages)
    assert len(after.probes) == facts
    for old, new in zip(before.messages, after.messages, strict=True):
        assert (old.role, old.calls, old.call_id) == (new.role, new.calls, new.call_id)
        assert new.text.startswith(old.text)
        assert old.role in ("user", "tool") or new is old
    told_before = "\n".join(map(searchable, before.messages))
    for probe in after.probes:
        assert probe.source_message is not None
        host = searchable(after.messages[probe.source_message])
        assert all(span in host for span in probe.evidence)
        assert all(value in host and value not in told_before for value in probe.gold)
        assert not any(value in probe.question for value in (*probe.gold, *probe.stale))


def test_an_update_names_the_value_it_supersedes_which_stands_no_later() -> None:
    planted = plant(coding(20), facts=30, kinds=("update",))
    texts = [searchable(message) for message in planted.messages]
    for probe in planted.probes:
        (stale,), (current,) = probe.stale, probe.gold
        old, new = (next(at for at, text in enumerate(texts) if value in text) for value in (stale, current))
        assert old <= new
        whole = "\n".join(texts)
        assert whole.index(stale) < whole.index(current)


def test_facts_stand_where_they_are_asked_to() -> None:
    early = plant(coding(40), facts=5, positions=[0.0])
    late = plant(coding(40), facts=5, positions=[1.0], kinds=("name",))
    assert {probe.source_message for probe in early.probes if probe.kind != "update"} == {1}
    assert {probe.source_message for probe in late.probes} == {81}


def test_the_seed_decides_everything_and_the_transcript_takes_part() -> None:
    assert transcript_line(plant(coding(9), seed=3)) == transcript_line(plant(coding(9), seed=3))
    assert transcript_line(plant(coding(9), seed=3)) != transcript_line(plant(coding(9), seed=4))
    assert {probe.kind for probe in plant(coding(9)).probes} == set(KINDS)


@pytest.mark.parametrize(
    "node", [{"facts": "many"}, {"colour": 1}, {"kinds": ["smell"]}, {"facts": 0}, {"positions": [2]}]
)
def test_what_cannot_be_planted_is_refused(node: dict[str, object]) -> None:
    with pytest.raises(ConfigurationError, match="planted"):
        plant_from(coding(3), node)  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="no user message"):
        plant(Transcript("empty", (system("Nothing."),)))

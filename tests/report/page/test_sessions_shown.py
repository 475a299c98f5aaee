"""Which sessions the context view of a page holds when a run has more than a page can carry."""

from __future__ import annotations

import pytest

from compaction_lab.conversation.messages import JSON
from compaction_lab.report.page import contexts
from compaction_lab.report.page.contexts import context_data, shown_sessions
from compaction_lab.sweep.loading import Run


def transcripts(data: dict[str, JSON]) -> set[object]:
    units = data["units"]
    assert isinstance(units, list)
    return {unit["transcript"] for unit in units}


def test_a_page_shows_all_sessions_of_a_small_run_those_with_the_most_misses_first(sessions: Run) -> None:
    shown = shown_sessions(sessions)
    missed = sessions.probes[sessions.probes["score"].astype(float) < 1].groupby("transcript").size()

    assert {transcript for _, transcript in shown} == set(sessions.units["transcript"])
    counts = [int(missed.get(transcript, 0)) for _, transcript in shown]
    assert counts == sorted(counts, reverse=True)
    assert counts[0] > 0


def test_a_page_of_many_calls_shows_fewer_sessions_but_one_at_least(
    sessions: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    everything = shown_sessions(sessions)
    monkeypatch.setattr(contexts, "CALL_LIMIT", 1)

    assert shown_sessions(sessions) == everything[:1]
    assert shown_sessions(sessions, len(everything)) == everything
    assert shown_sessions(sessions, 0) == []


def test_what_is_not_shown_is_not_on_the_page(sessions: Run) -> None:
    first = shown_sessions(sessions, 1)

    assert transcripts(context_data(sessions, first)) == {first[0][1]}
    assert len(transcripts(context_data(sessions))) == len(shown_sessions(sessions)) > 1

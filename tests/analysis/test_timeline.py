"""Firings on the calls of their sessions."""

from __future__ import annotations

import compaction_lab as lab
from compaction_lab.analysis import firing_timeline
from compaction_lab.conversation.messages import assistant, system, user


def test_every_unit_has_a_row_and_every_firing_its_call() -> None:
    said = [system("Work."), *(text for number in range(6) for text in (user(f"q{number} " * 50), assistant("yes")))]
    transcript = lab.Transcript("t", tuple(said))
    run = lab.replay(transcript, lab.strategy("sliding_window", keep_last=2))
    table = firing_timeline(run)

    baseline = table[table["arm"] == "none"]
    assert len(baseline) == 1
    assert baseline["call"].isna().all()
    fired = table[table["arm"] != "none"]
    firings = run.compactions[run.compactions["edits"] != "[]"]
    assert list(fired["call"]) == list(firings["call"])
    assert (fired["calls"] == 6).all()
    assert fired["reclaimed_share"].between(0, 1).all()

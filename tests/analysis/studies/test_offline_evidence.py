"""The offline scores of one public task under five strategies, and the curve on facts it has not seen."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from compaction_lab.analysis.studies import offline_evidence, recall_model
from compaction_lab.analysis.studies.resampling import auc
from compaction_lab.conversation.log import Log
from compaction_lab.conversation.messages import Message, Text, user
from compaction_lab.conversation.tokens import TokenCounter, tokenizer
from compaction_lab.conversation.transcript import Probe, Transcript


def conversation(turns: int) -> list[Message]:
    said = [f"Fact {turn}: the parcel {turn} weighs {turn}00 grams and is blue. " * 6 for turn in range(turns)]
    return [message for text in said for message in (user(text), Message("assistant", (Text(f"Noted. {text}"),)))]


@pytest.mark.parametrize("name", offline_evidence.NEAREST)
def test_every_nearest_preset_answers_to_a_long_history(name: str) -> None:
    log = Log(conversation(120))
    log.append(user("What does parcel 3 weigh?"))
    counter = TokenCounter(tokenizer("o200k_base"))
    context = offline_evidence.compacted(log, offline_evidence.NEAREST[name](), counter)
    whole = sum(map(counter.message, log.messages))
    assert (context.tokens(counter) < whole) == (name != "full_context")
    assert context.messages[-1].text == "What does parcel 3 weigh?"


def test_truncation_loses_what_is_old_and_unjudged_strategies_are_left_out() -> None:
    messages = conversation(120)
    probe = Probe("q", "fact", "What does parcel 3 weigh?", ("300",), (messages[6].text,), source_message=6)
    rows = pd.DataFrame(
        [
            {"question_id": "t", "strategy": name, "right": right, "compacted_tokens": 100}
            for name, right in (("full_context", 1.0), ("full_context", 0.0), ("naive_truncation", 0.0))
        ]
    )
    transcript = Transcript("t", tuple(messages), probes=(probe,))
    found = {one.strategy: one for one in offline_evidence.scores(transcript, rows)}
    assert set(found) == {"full_context", "naive_truncation"}
    assert (found["full_context"].survival, found["full_context"].right) == (1, 0.5)
    assert (found["naive_truncation"].survival, found["naive_truncation"].expected) == (0, 0)


def test_few_tasks_validate_nothing() -> None:
    assert offline_evidence._verdict(pd.DataFrame(), 24).startswith("Not validated: 24 matched tasks")


def test_the_curve_on_facts_it_has_not_seen(public_data: Callable[[str], Path]) -> None:
    rows = recall_model.read(public_data("published/lost_in_compaction/recall_model_data.csv"))
    used = rows[rows["experiment"].isin(recall_model.USED)].reset_index(drop=True)
    expected = recall_model.held_out(used)
    assert auc(expected, used["recalled"]) == pytest.approx(0.82, abs=0.015)
    assert auc(expected, used["recalled"]) < auc(
        recall_model.predicted(used, recall_model.fitted(used)), used["recalled"]
    )

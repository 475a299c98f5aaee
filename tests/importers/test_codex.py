from pathlib import Path

from compaction_lab.conversation.transcript import RecordedCompaction
from compaction_lab.importers import load_transcripts

FIXTURE = Path(__file__).parent / "fixtures/codex_rollout.jsonl"


def test_events_repeat_nothing_and_totals_that_stand_still_count_once() -> None:
    (transcript,) = load_transcripts(FIXTURE)
    assert [message.text for message in transcript.messages] == [
        "You keep a parts store.",
        "Where are bolts?",
        "",
        "shelf 12",
        "Shelf 12.",
        "Summary: bolts are on shelf 12.",
        "And nuts?",
        "Shelf 3.",
    ]
    usages = [message.usage for message in transcript.messages if message.usage]
    # The totals of the last event, less what was rolled back, which had no usage of its own.
    assert sum(usage.input_tokens for usage in usages) == 330
    assert sum(usage.cache_read_tokens for usage in usages) == 140
    assert sum(usage.output_tokens + usage.reasoning_tokens for usage in usages) == 34


def test_a_compaction_brings_only_what_is_new_and_its_size_is_that_of_the_last_call() -> None:
    (transcript,) = load_transcripts(FIXTURE)
    assert transcript.compactions == (RecordedCompaction(5, "", 170, None),)
    assert transcript.messages[5].source == "summary"


def test_an_answer_has_the_time_and_model_it_was_given_with() -> None:
    (transcript,) = load_transcripts(FIXTURE)
    called, answered = transcript.messages[2], transcript.messages[3]
    assert (called.timestamp_s, called.model) == (1767323045.0, "m-1")
    assert answered.timestamp_s == 1767323047.0
    assert [type(part).__name__ for part in called.parts] == ["Reasoning"]

"""The extractive summarizer copies, keeps its budget, and keeps only what it sees."""

from __future__ import annotations

import os
import subprocess
import sys

from hypothesis import given
from hypothesis import strategies as st

from compaction_lab.conversation.messages import system, user
from compaction_lab.conversation.tokens import tokenizer
from compaction_lab.models.base import ModelRequest
from compaction_lab.models.stub_summarizer import HEADING, ExtractiveSummarizer, summarize
from compaction_lab.scenarios.laptop_catalog import load_catalog
from compaction_lab.scenarios.laptop_catalog.reading import read

count = tokenizer("o200k_base").count
CODING = """<transcript>
user: The build fails on Python 3.12. Please find out why, and do not touch setup.py.
assistant: I will run the tests first.
assistant -> bash({"command": "pytest -x"})
tool bash: ============ FAILURES ============
tests/test_io.py:41: AssertionError: expected 17, got 16
1 failed, 212 passed in 3.41s
assistant: The failure is in tests/test_io.py at line 41. The reader drops the last row when the file lacks a newline.
user: Good. Fix it in reader.py.
assistant: I changed read_rows in reader.py so that the last row is kept.
</transcript>"""

messages = st.tuples(st.sampled_from(["user", "assistant", "tool bash", "system"]), st.text(min_size=1, max_size=200))
transcripts = st.lists(messages, max_size=12).map(lambda items: "\n".join(f"{role}: {text}" for role, text in items))


def asked(transcript: str, budget: int | None) -> str:
    request = ModelRequest((system("Summarise."), user(transcript)), "summarizer", max_output_tokens=budget)
    return ExtractiveSummarizer()(request).text


@given(transcripts, st.integers(8, 300))
def test_it_never_exceeds_the_budget_and_is_never_empty(transcript: str, budget: int) -> None:
    text = asked(transcript, budget)
    assert count(text) <= budget
    assert bool(text) == bool(transcript.strip())


@given(transcripts)
def test_every_line_stands_in_the_transcript(transcript: str) -> None:
    for line in asked(transcript, 200).splitlines()[1:]:
        copied = line.removeprefix("## ").removeprefix("- ")
        assert line == "---" or copied in transcript


def test_what_tells_most_is_kept_in_its_order_under_its_title() -> None:
    text = asked(CODING, 90)
    assert text.startswith(HEADING)
    assert "tests/test_io.py:41: AssertionError: expected 17, got 16" in text
    assert "pytest -x" not in text
    places = [CODING.find(line.removeprefix("- ")) for line in text.splitlines()[1:] if line.startswith("- ")]
    assert places == sorted(places)


def test_records_keep_their_names() -> None:
    products = load_catalog().products
    transcript = "\n".join(f"tool get_product_details: {p.as_json()}" for p in products)
    for budget in (60, 150, 400):
        for fact in read(summarize(transcript, budget, count)):
            if product := load_catalog().find(fact.product):
                gold = product.value(fact.attribute)
                assert gold in {None, fact.value}, fact


def test_a_summary_of_a_summary_keeps_names_with_facts() -> None:
    products = load_catalog().products
    transcript = "\n".join(f"tool get_product_details: {p.as_json()}" for p in products)
    again = f"user: Summary so far: {summarize(transcript, 400, count)}\nuser: And now?"
    for fact in read(summarize(again, 200, count)):
        product = load_catalog().product(fact.product)
        assert product.value(fact.attribute) in {None, fact.value}, fact


def test_what_was_masked_cannot_be_kept() -> None:
    text = asked(
        "user: And the weight?\ntool get_product_details: [tool result removed]\nassistant: Done, see above.", 100
    )
    assert "kg" not in text


def test_equal_requests_get_equal_replies_and_the_default_budget_holds() -> None:
    long = CODING * 40 + "\n".join(f"assistant: Step {i} changed file_{i}.py in module {i % 7}." for i in range(400))
    first = asked(long, None)
    assert first == asked(long, None)
    assert count(first) <= 500


def test_every_process_writes_the_same_summary() -> None:
    script = (
        "import sys; from compaction_lab.conversation.tokens import tokenizer; "
        "from compaction_lab.models.stub_summarizer import summarize; "
        "print(summarize(sys.argv[1], 60, tokenizer('characters').count))"
    )
    said = {
        subprocess.run(
            [sys.executable, "-c", script, CODING * 3],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(said) == 1

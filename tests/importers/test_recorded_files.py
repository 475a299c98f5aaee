"""Public recordings: how much stands in each, counted apart from the importers, and twins that others normalised."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from compaction_lab.conversation.messages import Message
from compaction_lab.conversation.transcript import RecordedCompaction
from compaction_lab.importers import load_transcripts, read_transcripts
from compaction_lab.importers.langfuse import spoken_in

PublicData = Callable[[str], Path]

COUNTS = {
    # transcripts, messages, turns, calls, results, model calls, of these with usage, compactions
    "claude_code/representative_messages.jsonl": (1, 11, 4, 2, 2, 5, 5, 0),
    "claude_code/rewind_then_compact.jsonl": (1, 9, 4, 0, 0, 4, 4, 1),
    "codex/rollout-tools.jsonl": (1, 8, 1, 3, 3, 4, 0, 0),
    "inspect/log_read_sample.eval": (1, 3, 1, 0, 0, 1, 1, 0),
    "inspect/log_tool_call_error.json": (1, 11, 0, 0, 11, 0, 0, 0),
    "langfuse/langgraph-python-2025-08-22.trace.json": (1, 5, 2, 1, 1, 2, 2, 0),
    "langfuse/microsoft-agent-2025-12-17.trace.json": (1, 5, 1, 1, 1, 2, 2, 0),
    "langfuse/openai-agents-2025-09-30.trace.json": (1, 5, 1, 1, 1, 2, 2, 0),
    "mini_swe_agent/github_issue.traj.json": (1, 22, 11, 0, 0, 10, 0, 0),
    "openhands/basic.json": (1, 4, 1, 2, 1, 2, 2, 0),
    "swe_agent/ctf-networking_1.traj": (1, 9, 4, 0, 0, 4, 0, 0),
    "swe_agent/function_calling_simple.traj": (1, 12, 1, 5, 5, 5, 0, 0),
    "swe_agent/marshmallow-1867-function-calling.traj": (1, 24, 1, 11, 11, 11, 0, 0),
    "tau_bench/gpt-4o-airline-first-60.json": (60, 1700, 489, 361, 361, 790, 0, 0),
}
TRACES = ["langgraph-python-2025-08-22", "microsoft-agent-2025-12-17", "openai-agents-2025-09-30"]


@pytest.mark.parametrize("name", COUNTS)
def test_each_recording_holds_what_was_counted_in_it(public_data: PublicData, name: str) -> None:
    _, report = read_transcripts(public_data(f"transcripts/{name}"))
    found = (
        report.transcripts,
        report.messages,
        report.turns,
        report.tool_calls,
        report.tool_results,
        report.model_calls,
        report.calls_with_usage,
        report.compactions,
    )
    assert found == COUNTS[name]
    assert report.formats.keys() == {name.split("/", maxsplit=1)[0]}


def test_no_recording_is_left_out(public_data: PublicData) -> None:
    folder = public_data("transcripts")
    files = {str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file()}
    assert {name for name in files if not name.endswith(".chatml.json")} == COUNTS.keys()


def test_the_rewound_session_is_its_kept_branch_and_marks_its_compaction(public_data: PublicData) -> None:
    (transcript,) = load_transcripts(public_data("transcripts/claude_code/rewind_then_compact.jsonl"))
    roles = [message.role[0] for message in transcript.messages]
    assert roles == ["u", "a", "u", "a", "u", "a", "u", "u", "a"]
    assert transcript.messages[2].text == "Second attempt"
    assert transcript.compactions == (RecordedCompaction(6, "auto", 150000, None),)
    assert transcript.messages[6].source == "summary"
    assert not transcript.append_only
    assert sum(message.usage.input_tokens for message in transcript.messages if message.usage) == 4 * 10


def test_the_event_trajectory_counts_each_response_once(public_data: PublicData) -> None:
    (transcript,) = load_transcripts(public_data("transcripts/openhands/basic.json"))
    usages = [message.usage for message in transcript.messages if message.usage]
    first = usages[0]
    assert (first.fresh_input_tokens, first.cache_write_tokens, first.output_tokens) == (4, 3482, 1135)
    assert len(usages) == len({message.response_id for message in transcript.messages if message.response_id}) == 2


@pytest.mark.parametrize("trace", TRACES)
def test_each_generation_equals_its_normalised_twin(public_data: PublicData, trace: str) -> None:
    export = json.loads(public_data(f"transcripts/langfuse/{trace}.trace.json").read_bytes())
    twins = json.loads(public_data(f"transcripts/langfuse/{trace}.chatml.json").read_bytes())
    compared = 0
    for observation in export["observations"]:
        for side in ("input", "output") if observation["type"] == "GENERATION" else ():
            twin = twins[observation["id"]][side]["data"]
            spoken = spoken_in(observation[side], side)
            # The instructions of a whole response are no message of its twin.
            ours = [plain(message) for message in spoken.messages if message.role != "system"]
            assert ours == [normalised(message) for message in twin]
            assert {tool.name for tool in spoken.tools} == {
                t["name"] for message in twin for t in message.get("tools", [])
            }
            compared += 1
    assert compared == 4


@pytest.mark.parametrize("trace", TRACES)
def test_each_trace_is_the_conversation_of_its_twins(public_data: PublicData, trace: str) -> None:
    export = json.loads(public_data(f"transcripts/langfuse/{trace}.trace.json").read_bytes())
    twins = json.loads(public_data(f"transcripts/langfuse/{trace}.chatml.json").read_bytes())
    (transcript,) = load_transcripts(public_data(f"transcripts/langfuse/{trace}.trace.json"))
    agents = [
        each for each in export["observations"] if each["type"] in {"AGENT", "GENERATION"} and each["id"] in twins
    ]
    whole = max(
        ([*twins[each["id"]]["input"]["data"], *twins[each["id"]]["output"]["data"]] for each in agents), key=len
    )
    ours = [plain(message) for message in transcript.messages]
    assert ours[len(ours) - len(whole) :] == [normalised(message) for message in whole]
    usage = [message.usage.input_tokens for message in transcript.messages if message.usage]
    generations = [each for each in export["observations"] if each["type"] == "GENERATION"]
    assert sorted(usage) == sorted(each["usageDetails"]["input"] for each in generations)


def test_every_memory_task_keeps_its_turns_and_evidence(public_data: PublicData) -> None:
    folder = public_data("long_memory")
    transcripts, report = read_transcripts(folder)
    assert (report.transcripts, report.messages) == (38, 18934)
    assert sum(len(probe.evidence) for transcript in transcripts for probe in transcript.probes) == 64
    assert report.warnings == {"sessions_reordered": 15}
    for transcript in transcripts:
        (probe,) = transcript.probes
        texts = {message.text for message in transcript.messages}
        assert texts.issuperset(probe.evidence)
        assert bool(probe.evidence) != transcript.id.endswith("_abs")
        stamps = [message.timestamp_s or 0 for message in transcript.messages]
        assert stamps == sorted(stamps)


def plain(message: Message) -> tuple[object, ...]:
    calls = [(call.id, call.name, json.loads(call.arguments)) for call in message.calls]
    return message.role, message.text, calls, message.call_id


def normalised(twin: dict[str, object]) -> tuple[object, ...]:
    calls = [(call["id"], call["name"], json.loads(call["arguments"])) for call in twin.get("tool_calls", [])]  # type: ignore[attr-defined]
    return twin["role"], twin.get("content") or "", calls, twin.get("tool_call_id", "")

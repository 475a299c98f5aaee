"""Each format's own small session: what stands in it, and that it stays the same in the lab's format."""

import json
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest

from compaction_lab.conversation.messages import Media
from compaction_lab.conversation.transcript import Transcript
from compaction_lab.importers import load_transcripts, read_transcripts, write_transcripts
from compaction_lab.importers.load import IMPORTERS

FIXTURES = Path(__file__).parent / "fixtures"


class Expected(NamedTuple):
    """What a session holds: ``usage`` is all sent and all received of each call that has it."""

    format: str
    roles: str
    usage: list[tuple[int, int]]
    warnings: dict[str, int]
    turns: int = 1
    calls: int = 1
    compactions: int = 0


SESSIONS: dict[str, list[Expected]] = {
    "openai_finetune.jsonl": [
        Expected("openai_chat", "sua", [], {"unanswered_call": 1}),
        Expected("openai_chat", "sua", [], {"unanswered_call": 2, "reused_call_id": 1}, calls=2),
    ],
    "openai_calls.jsonl": [
        Expected("call_log", "suata", [(40, 9), (60, 6)], {"unread_choice": 2}),
        Expected("call_log", "sua", [(20, 4)], {}, calls=0),
    ],
    "responses_chain.jsonl": [Expected("openai_responses", "suatta", [(50, 20), (90, 8)], {}, calls=2)],
    "responses_items.jsonl": [Expected("openai_responses", "uatata", [], {}, calls=2)],
    "anthropic_request.json": [
        Expected("anthropic", "suattuaau", [], {"recorded_compaction": 1}, turns=3, calls=2, compactions=1)
    ],
    "claude_code_session.jsonl": [
        Expected(
            "claude_code",
            "uattauauua",
            [(910, 57), (1034, 9), (1054, 6), (60, 4)],
            {"abandoned_message": 2, "recorded_compaction": 1, "synthetic_message": 1, "unread_attachment": 1},
            turns=3,
            calls=2,
            compactions=1,
        ),
        Expected("claude_code", "ua", [(30, 5)], {}, calls=0),
    ],
    "codex_rollout.jsonl": [
        Expected(
            "codex",
            "suatauua",
            [(100, 20), (160, 10), (70, 4)],
            {"abandoned_message": 2, "recorded_compaction": 1},
            turns=2,
            compactions=1,
        )
    ],
    "otel_spans.jsonl": [Expected("otel_genai", "suata", [(40, 9), (70, 6)], {"call_without_content": 1})],
    "otel_events.json": [Expected("otel_genai", "sua", [(40, 9)], {"unanswered_call": 1})],
    "langsmith_runs.jsonl": [Expected("langsmith", "suata", [(40, 9), (60, 5)], {})],
    "langsmith_wire.json": [Expected("langsmith", "sua", [(30, 4)], {}, calls=0)],
    "langfuse_trace.json": [Expected("langfuse", "suata", [(40, 9), (60, 5)], {})],
    "mini_new.traj.json": [Expected("mini_swe_agent", "suata", [(80, 12), (110, 7)], {"unanswered_call": 1}, calls=2)],
    "mini_old.traj.json": [Expected("mini_swe_agent", "suaua", [], {}, turns=2, calls=0)],
    "openhands_v0.json": [
        Expected(
            "openhands",
            "suattuata",
            [(100, 20)],
            {"recorded_compaction": 1, "synthesised_call_id": 1},
            calls=3,
            compactions=1,
        )
    ],
    "openhands_v1": [
        Expected(
            "openhands_v1",
            "suattua",
            [(100, 20), (130, 8)],
            {"recorded_compaction": 1},
            calls=2,
            compactions=1,
        )
    ],
    "tau_bench.json": [
        Expected("tau_bench", "suatau", [], {}, turns=2),
        Expected("tau_bench", "sua", [], {}, calls=0),
    ],
    "tau2_results.json": [
        Expected(
            "tau2_bench",
            "sauatau",
            [(5433, 20), (90, 8)],
            {
                "reconstructed_system_prompt": 1,
                "usage_cache_beside_input": 1,
                "user_tool_call": 1,
                "user_tool_result": 1,
            },
            turns=2,
        )
    ],
    "inspect_log.json": [
        Expected(
            "inspect",
            "suata",
            [(110, 20), (40, 5)],
            {"call_outside_conversation": 1, "recorded_compaction": 1},
            compactions=1,
        )
    ],
    "longmemeval.json": [
        Expected("longmemeval", "uauua", [], {"sessions_reordered": 1}, turns=3, calls=0),
        Expected("longmemeval", "au", [], {}, calls=0),
    ],
    "sharegpt.json": [
        Expected("sharegpt", "suattauatta", [], {"orphan_result": 1, "unparsed_call": 1}, turns=2, calls=3)
    ],
    "agent_framework_session.json": [
        Expected("agent_framework", "suatau", [(40, 9)], {"recorded_compaction": 1}, turns=2, compactions=1)
    ],
    "semantic_kernel_dotnet.json": [Expected("semantic_kernel", "suata", [(40, 9), (60, 5)], {})],
    "semantic_kernel_python.json": [Expected("semantic_kernel", "suat", [(40, 9)], {})],
}
SESSIONS["tau2_folder"] = SESSIONS["tau2_results.json"]


def seen(transcript: Transcript) -> Expected:
    messages = transcript.messages
    used = [m.usage for m in messages if m.usage is not None]
    return Expected(
        transcript.format,
        "".join(message.role[0] for message in messages),
        [(usage.input_tokens, usage.output_tokens + usage.reasoning_tokens) for usage in used],
        dict(transcript.warnings),
        sum(message.role == "user" and message.source != "summary" for message in messages),
        sum(len(message.calls) for message in messages),
        len(transcript.compactions),
    )


@pytest.mark.parametrize("name", SESSIONS)
def test_each_format_is_told_from_its_content_and_read(name: str) -> None:
    assert [seen(transcript) for transcript in load_transcripts(FIXTURES / name)] == SESSIONS[name]


def test_every_format_has_a_session() -> None:
    written_elsewhere = {"lab", "swe_agent"}
    assert {each.format for expected in SESSIONS.values() for each in expected} == IMPORTERS.keys() - written_elsewhere


def test_a_folder_of_all_formats_is_read_once_each() -> None:
    _, report = read_transcripts(FIXTURES)
    every = [each for expected in SESSIONS.values() for each in expected]
    assert report.transcripts == len(every)
    assert (report.tool_calls, report.compactions) == (
        sum(each.calls for each in every),
        sum(each.compactions for each in every),
    )
    assert report.calls_with_usage == sum(len(each.usage) for each in every)


@pytest.mark.parametrize("keep_media", [False, True])
def test_each_session_is_the_same_after_it_was_written_in_the_lab_s_format(*, keep_media: bool, tmp_path: Path) -> None:
    for name in SESSIONS:
        transcripts = load_transcripts(FIXTURES / name, keep_media=keep_media)
        write_transcripts(tmp_path / "again.jsonl", transcripts)
        again = load_transcripts(tmp_path / "again.jsonl")
        assert [bare(each) for each in again] == [bare(each) for each in transcripts]


def bare(transcript: Transcript) -> Transcript:
    """Without where it was read, and without how the wire spelled it."""
    messages = tuple(replace(message, extra={}) for message in transcript.messages)
    return replace(transcript, origin="", messages=messages)


def told(name: str, *, at: int = 0, keep_media: bool = False) -> Transcript:
    return load_transcripts(FIXTURES / name, keep_media=keep_media)[at]


@pytest.mark.parametrize(
    ("name", "index", "size"),
    [
        ("anthropic_request.json", 3, (2, 3)),
        ("inspect_log.json", 1, (2, 3)),
        ("responses_items.jsonl", 0, (3, 2)),
        ("agent_framework_session.json", 5, (3, 2)),
        ("semantic_kernel_dotnet.json", 1, (3, 2)),
    ],
)
def test_images_keep_type_and_size_and_their_payload_when_asked(name: str, index: int, size: tuple[int, int]) -> None:
    found = [p for p in told(name).messages[index].parts if isinstance(p, Media)]
    kept = [p for p in told(name, keep_media=True).messages[index].parts if isinstance(p, Media)]
    assert [(image.width, image.height, image.payload) for image in found] == [(*size, "")]
    assert found[0].byte_size > 0
    assert kept[0].payload
    assert (kept[0].width, kept[0].height) == size


def test_a_response_is_one_message_with_its_thoughts_and_calls() -> None:
    said = told("responses_chain.jsonl").messages[2]
    assert [type(part).__name__ for part in said.parts] == ["Reasoning"]
    assert [(call.id, call.arguments) for call in said.calls] == [("k1", '{"part":"bolt"}'), ("k2", '{"part":"nut"}')]
    assert said.usage is not None
    assert (said.usage.fresh_input_tokens, said.usage.cache_read_tokens) == (40, 10)
    assert (said.usage.output_tokens, said.usage.reasoning_tokens) == (12, 8)
    assert (said.response_id, said.timestamp_s) == ("resp_1", 1767000000.0)


def test_a_response_without_its_input_says_that_it_is_missing(tmp_path: Path) -> None:
    line = '{"id": "r2", "object": "response", "previous_response_id": "r1", "output": [{"type": "message", '
    line += '"role": "assistant", "content": [{"type": "output_text", "text": "Yes."}]}]}\n'
    (tmp_path / "r.jsonl").write_text(line)
    (transcript,) = load_transcripts(tmp_path / "r.jsonl")
    assert transcript.warnings == {"missing_history": 1, "missing_input": 1}


def test_anthropic_results_leave_their_user_message_and_compaction_blocks_are_summaries() -> None:
    transcript = told("anthropic_request.json")
    assert [m.call_id for m in transcript.messages[3:5]] == ["t1", "t2"]
    assert transcript.messages[4].is_error
    assert transcript.messages[5].text == "Be quick."
    assert transcript.messages[6].source == "summary"
    assert [(c.position, c.trigger) for c in transcript.compactions] == [(6, "compact_20260112")]
    assert not transcript.append_only
    assert transcript.tools[0].name == "shelf"


def test_only_the_agent_s_side_of_a_simulation_counts() -> None:
    transcript = told("tau2_results.json")
    assert all("press" not in [call.name for call in message.calls] for message in transcript.messages)
    assert transcript.messages[0].source == "injected"
    called = transcript.messages[3]
    assert (called.latency_s, called.cost_usd, called.model) == (1.25, 0.02, "claude-x")
    assert called.usage is not None
    assert (called.usage.fresh_input_tokens, called.usage.cache_read_tokens) == (50, 5383)
    assert sum(message.cost_usd or 0 for message in transcript.messages) == pytest.approx(0.05)


def test_two_actions_of_one_response_are_one_message_with_one_usage() -> None:
    old, new = told("openhands_v0.json"), told("openhands_v1")
    assert [call.id for call in old.messages[2].calls] == ["k1", "k2"]
    assert old.messages[2].usage is not None
    assert (old.messages[2].usage.fresh_input_tokens, old.messages[2].usage.cache_write_tokens) == (10, 60)
    assert [message.cost_usd for message in old.messages if message.cost_usd] == pytest.approx([0.01, 0.005])
    assert old.messages[4].is_error
    assert [call.id for call in new.messages[2].calls] == ["k1", "k2"]
    assert (new.messages[2].latency_s, new.messages[2].response_id) == (1.5, "r1")
    assert new.messages[4].is_error
    assert new.messages[5].source == old.messages[5].source == "summary"


def test_an_inspect_call_s_usage_goes_to_the_message_it_produced() -> None:
    transcript = told("inspect_log.json")
    assert transcript.messages[3].text == "shelf 12, third row"
    assert transcript.messages[3].is_error
    assert transcript.tools[0].description == "Where a part lies"
    assert [(c.position, c.trigger, c.tokens_before, c.tokens_after) for c in transcript.compactions] == [
        (3, "summary", 900, 200)
    ]
    said = transcript.messages[2]
    assert said.usage is not None
    assert (said.usage.fresh_input_tokens, said.usage.cache_read_tokens, said.usage.reasoning_tokens) == (10, 100, 6)
    assert said.latency_s == 1.5


def test_a_memory_task_is_in_order_of_time_and_its_probe_has_the_answering_turns() -> None:
    update, unanswerable = load_transcripts(FIXTURES / "longmemeval.json")
    (probe,) = update.probes
    assert probe.evidence == ("I have 12 bolts.", "I now have 40 bolts.")
    assert (probe.source_message, probe.gold, probe.kind) == (3, ("40",), "knowledge-update")
    assert update.messages[0].timestamp_s == 1682935200.0
    assert unanswerable.probes[0].evidence == ()
    assert unanswerable.probes[0].source_message is None


def test_calls_without_ids_are_answered_in_their_order() -> None:
    messages = told("sharegpt.json").messages
    assert [call.id for message in messages for call in message.calls] == ["call_1", "call_2", "call_3"]
    assert [message.call_id for message in messages if message.role == "tool"] == ["call_1", "call_2", "call_3", ""]


def test_a_kernel_s_tool_message_counts_once_and_names_plugin_and_function() -> None:
    messages = told("semantic_kernel_dotnet.json").messages
    assert messages[3].text == "shelf 12"
    assert (messages[2].calls[0].name, messages[3].call_id) == ("store-shelf", "k1")


def test_a_session_kept_by_the_service_is_refused_saying_so(tmp_path: Path) -> None:
    (tmp_path / "s.json").write_text('{"type": "session", "session_id": "a", "service_session_id": "b", "state": {}}')
    with pytest.raises(Exception, match="they are on the server"):
        load_transcripts(tmp_path / "s.json")


def test_spans_without_content_are_refused_saying_how_to_capture_it(tmp_path: Path) -> None:
    span = '{"name": "chat", "attributes": {"gen_ai.operation.name": "chat", "gen_ai.usage.input_tokens": 5}}'
    (tmp_path / "s.jsonl").write_text(span)
    with pytest.raises(Exception, match="CAPTURE_MESSAGE_CONTENT"):
        load_transcripts(tmp_path / "s.jsonl")


def test_a_session_that_the_installed_framework_wrote_is_read(tmp_path: Path) -> None:
    framework = pytest.importorskip("agent_framework")
    content = framework.Content
    session = framework.AgentSession()
    session.state["in_memory"] = {
        "messages": [
            framework.Message("user", [content.from_text("Where are bolts?")]),
            framework.Message(
                "assistant",
                [
                    content.from_text_reasoning(text="Look it up."),
                    content.from_function_call("k1", "shelf", arguments={"part": "bolt"}),
                    content.from_usage({"input_token_count": 40, "output_token_count": 9, "total_token_count": 49}),
                ],
            ),
            framework.Message("tool", [content.from_function_result("k1", result="shelf 12")]),
        ]
    }
    (tmp_path / "s.json").write_text(json.dumps(session.to_dict()))
    (transcript,) = load_transcripts(tmp_path / "s.json")
    assert seen(transcript) == Expected("agent_framework", "uat", [(40, 9)], {})
    assert transcript.messages[2].text == "shelf 12"
    assert transcript.id == session.session_id

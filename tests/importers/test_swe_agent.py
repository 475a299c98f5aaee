import json
from collections.abc import Callable
from pathlib import Path

import pytest

from compaction_lab.conversation.pairing import pair_results
from compaction_lab.importers import load_transcripts

PublicData = Callable[[str], Path]


@pytest.mark.parametrize(
    ("name", "messages", "calls", "results", "warnings"),
    [
        ("marshmallow-1867-function-calling", 24, 11, 11, {"reused_call_id": 5}),
        ("function_calling_simple", 12, 5, 5, {}),
        ("ctf-networking_1", 9, 0, 0, {}),
    ],
)
def test_recorded_trajectories(
    public_data: PublicData, name: str, messages: int, calls: int, results: int, warnings: dict[str, int]
) -> None:
    (transcript,) = load_transcripts(public_data(f"transcripts/swe_agent/{name}.traj"))
    roles = [message.role for message in transcript.messages]
    assert (transcript.id, transcript.format) == (name, "swe_agent")
    assert (len(roles), sum(len(m.calls) for m in transcript.messages), roles.count("tool")) == (
        messages,
        calls,
        results,
    )
    assert transcript.warnings == warnings


def test_each_result_of_a_session_with_reused_ids_follows_its_own_call(public_data: PublicData) -> None:
    path = public_data("transcripts/swe_agent/marshmallow-1867-function-calling.traj")
    (transcript,) = load_transcripts(path)
    pairs = pair_results(transcript.messages)
    assert all(pairs[at] == at - 1 for at, message in enumerate(transcript.messages) if message.role == "tool")
    assert sum("\r\n" in message.text for message in transcript.messages) == 8
    assert transcript.meta["usage"] == {
        "model_calls": 11,
        "input_tokens": None,
        "output_tokens": None,
        "cost_usd": None,
    }


def call(call_id: str) -> dict[str, object]:
    function = {"name": "bash", "arguments": '{"command": "ls"}'}
    return {
        "role": "assistant",
        "content": "Let me look.",
        "thought": "Let me look.",
        "action": "ls",
        "agent": "main",
        "message_type": "action",
        "tool_calls": [{"id": call_id, "type": "function", "function": function}],
    }


def write(folder: Path, history: list[dict[str, object]], **more: object) -> Path:
    path = folder / "task.traj"
    path.write_text(json.dumps({"history": history, **more}))
    return path


def test_results_name_their_call_in_a_list_and_labels_become_tags(tmp_path: Path) -> None:
    history = [
        {"role": "system", "content": "You fix bugs.", "agent": "main", "message_type": "system_prompt"},
        {"role": "user", "content": "A worked example", "agent": "main", "is_demo": True},
        {
            "role": "user",
            "content": [{"type": "text", "text": "Fix it."}],
            "agent": "main",
            "message_type": "observation",
        },
        call("a"),
        {
            "role": "tool",
            "content": "a.py\r\nb.py",
            "tool_call_ids": ["a"],
            "message_type": "observation",
            "tags": ["keep_output"],
        },
        call("b"),
    ]
    info = {"exit_status": "submitted", "model_stats": {"api_calls": 2, "tokens_sent": 900, "tokens_received": 40}}
    (transcript,) = load_transcripts(write(tmp_path, history, trajectory=[], info=info))
    assert [message.tags for message in transcript.messages] == [
        ("system_prompt",),
        ("demo",),
        ("observation",),
        ("action",),
        ("observation", "keep_output"),
        ("action",),
    ]
    result = transcript.messages[4]
    assert (result.text, result.call_id, dict(result.extra)) == ("a.py\r\nb.py", "a", {})
    assert transcript.warnings == {"unanswered_call": 1}
    assert transcript.meta == {
        "exit_status": "submitted",
        "usage": {"model_calls": 2, "input_tokens": 900, "output_tokens": 40, "cost_usd": None},
    }


def test_elided_observations_are_counted(tmp_path: Path) -> None:
    history = [
        {"role": "user", "content": "Fix it."},
        call("a"),
        {"role": "tool", "content": "Old environment output: (12 lines omitted)", "tool_call_ids": ["a"]},
    ]
    (transcript,) = load_transcripts(write(tmp_path, history))
    assert transcript.warnings == {"elided_observation": 1}


def test_the_older_shape_has_observations_as_user_text(tmp_path: Path) -> None:
    history = [
        {"role": "system", "content": "You fix bugs.", "agent": "primary"},
        {"role": "user", "content": "Fix it.", "agent": "primary"},
        {"role": "assistant", "content": "ls", "thought": "", "action": "ls", "agent": "primary"},
        {"role": "user", "content": "a.py", "agent": "primary"},
    ]
    (transcript,) = load_transcripts(write(tmp_path, history, environment="swe_main", trajectory=[]))
    assert [message.role for message in transcript.messages] == ["system", "user", "assistant", "user"]
    assert transcript.meta == {"environment": "swe_main"}

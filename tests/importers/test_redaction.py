import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction_lab.conversation.messages import Message, Text, ToolCall, ToolDefinition, Usage, assistant, tool, user
from compaction_lab.conversation.transcript import Probe, Transcript
from compaction_lab.importers.lab import transcript_line
from compaction_lab.importers.redaction import Redactor

KEYS = [
    "sk-ant-api03-abcdefghijklmnopqrstuv",
    "sk-proj-abcdefghijklmnopqrstuv",
    "ghp_" + "a1" * 18,
    "AKIA" + "ABCD1234" * 2,
    "AIza" + "x" * 35,
    "xoxb-1234567890-abc",
    "hf_" + "a" * 24,
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.abc-_",
    "-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----",
]


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("around", ["{}", "key {} there", 'x = "{}"', "a\\n{}", "({})", "Bearer {}"])
def test_keys_are_found_wherever_they_stand(key: str, around: str) -> None:
    text = Redactor().text(around.format(key))
    assert key not in text
    assert text == around.format("REDACTED-KEY-1")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"api_key": "abcd1234efgh"}', '{"api_key": "REDACTED-KEY-1"}'),
        ('{\\"password\\": \\"correct-horse\\"}', '{\\"password\\": \\"REDACTED-KEY-1\\"}'),
        ("PASSWORD=correct-horse", "PASSWORD=REDACTED-KEY-1"),
        ("Authorization: Bearer abcdefghijklmnop", "Authorization: Bearer REDACTED-KEY-1"),
        ("postgres://me:hunter2@db.local/x", "postgres://me:REDACTED-KEY-1@db.local/x"),
        ("password = get_password_from_env()", "password = get_password_from_env()"),
        ("write to ann.lee+x@mail.example.com.", "write to person1@redacted.invalid."),
        ("line\\nann@example.com", "line\\nperson1@redacted.invalid"),
        ("git@github.com:a/b", "git@github.com:a/b"),
        ("@dataclass and a@b", "@dataclass and a@b"),
        ("cd /home/ann/x && ls /Users/ann/y", "cd /home/user1/x && ls /Users/user1/y"),
        ("C:\\\\Users\\\\Ann\\\\x C:\\Users\\Ann\\x", "C:\\\\Users\\\\user1\\\\x C:\\Users\\user1\\x"),
        ("https://example.com/home/page /Users/Shared/x", "https://example.com/home/page /Users/Shared/x"),
    ],
)
def test_what_is_replaced_and_what_is_not(text: str, expected: str) -> None:
    assert Redactor().text(text) == expected


def test_every_text_of_a_transcript_is_looked_at_and_equal_values_stay_equal() -> None:
    secret = "ann@example.com"
    messages = (
        user(f"I am {secret}"),
        assistant("", ToolCall("c", "mail", json.dumps({"to": secret}))),
        tool("c", f"sent to {secret}"),
        Message(
            "assistant", (Text("ok"),), usage=Usage(1, raw={"user": secret}), extra={secret: [secret]}, name=secret
        ),
    )
    probe = Probe("p", "fact", f"Who is {secret}?", (secret,), (f"I am {secret}",))
    tools = (ToolDefinition("mail", f"from {secret}", {"default": secret}),)
    redactor = Redactor()
    redacted = redactor.transcript(Transcript("t", messages, tools, (probe,), {"cwd": "/home/ann", "by": secret}))
    assert b"ann" not in transcript_line(redacted)
    assert json.loads(redacted.messages[1].calls[0].arguments) == {"to": "person1@redacted.invalid"}
    assert redacted.probes[0].evidence[0] in redacted.messages[0].text
    assert (redactor.distinct, redactor.replaced["home"]) == ({"email": 1, "home": 1}, 1)


def test_what_was_redacted_once_stays_as_it_is() -> None:
    once = Redactor().text(f"ann@example.com /home/ann {KEYS[0]} password=hunter2hunter2 /home/bob")
    again = Redactor()
    assert again.text(once) == once
    assert not again.replaced


@given(st.text(), st.text())
def test_any_text_is_redacted_and_text_without_secrets_is_unchanged(before: str, after: str) -> None:
    redacted = Redactor().text(f"{before} {KEYS[1]} {after}")
    assert KEYS[1] not in redacted
    plain = "".join(character for character in before if character.isspace() or character in "xyz")
    assert Redactor().text(plain) == plain

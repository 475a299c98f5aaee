"""A session whose every text tries something, for tests that all of it shows as text."""

from __future__ import annotations

import json
from pathlib import Path

NAME = "<img src=x onerror=\"document.title='owned'\">\x1b[31m\u202e$x$"
TEXTS = (
    "<script>document.title = 'owned'</script>",
    "</script><script>document.title = 'owned'</script>",
    "<img src=x onerror=\"document.title = 'owned'\">",
    "\x1b[31mred\x1b[0m \x1b]0;owned\x07",
    "left \u202e drawkcab",
    "\U0001f680 \U0001f469\u200d\U0001f469\u200d\U0001f467 zażółć",
    "broken \ud83d surrogate \udc00",
    "<!--data--> <!--script--> $x_1$ \\input{x} & | `code` %",
)
LONG_LINE = 1_000_000


def hostile_session(path: Path) -> Path:
    """Write the session as OpenAI chat JSONL: each text asked, put into a call, read as a result and used again."""
    messages: list[dict[str, object]] = [{"role": "system", "content": "Work."}]
    for number, text in enumerate(TEXTS):
        arguments = json.dumps({"path": f"/src/{number}/{text}"})
        call = {"id": f"c{number}", "type": "function", "function": {"name": "read", "arguments": arguments}}
        messages += [
            {"role": "user", "content": f"{text} task {number}"},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"c{number}", "content": f"/found/{number}/file.py {text} " * 40},
            {"role": "assistant", "content": f"It is in /found/{number}/file.py: {text}"},
        ]
    messages += [
        {"role": "user", "content": "Where was /found/1/file.py? " + "x" * LONG_LINE},
        {"role": "assistant", "content": "In /found/0/file.py and /found/1/file.py"},
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"id": NAME, "messages": messages}) + "\n", encoding="utf-8")
    return path

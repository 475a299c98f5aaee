"""What bridges and lab agree on with a scripted summariser: markers in texts, weights as tokens, echoing summaries.

Every message of a case says ``#n wk``: its number and its weight in tokens. A scripted summary lists the markers of
what its request showed, so that equal summaries mean equal requests, whatever their wording. Only the standard
library is used, so that bridges in other environments may import this file.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from typing import Any

SUMMARY_WEIGHT = 5
_MARK = re.compile(r"#\d+")
_WEIGHT = re.compile(r"\bw(\d+)\b")
_SUMMARY = re.compile(r"S\([^()]*\) w\d+")


def weight(text: str) -> int:
    """Return the tokens of a text: the sum of its weights."""
    return sum(map(int, _WEIGHT.findall(text)))


def echo(request: str, *, ordered: bool = False) -> str:
    """Return the scripted summary of a request: the markers it shows, each once, as they come or by number."""
    marks = list(dict.fromkeys(_MARK.findall(request)))
    if ordered:
        marks.sort(key=lambda mark: int(mark[1:]))
    return f"S({' '.join(marks)}) w{SUMMARY_WEIGHT}"


def bare(text: str) -> str:
    """Return a text without what a framework puts around a summary."""
    found = _SUMMARY.findall(text)
    return " ".join(found) if found else text.strip()


def item(role: str, text: str, calls: list[str] | None = None, call_id: str = "") -> list[Any]:
    """Return one kept message in the form that is compared."""
    return [role, bare(text), calls or [], call_id]


def serve(answer: Callable[[dict[str, Any]], list[Any]]) -> None:
    """Answer cases from standard input, one JSON line each, on standard output; an error is an answer too."""
    for line in sys.stdin:
        case = json.loads(line)
        try:
            print(json.dumps({"kept": answer(case)}), flush=True)
        except Exception as error:  # noqa: BLE001 - whatever the framework raises is what it does
            print(json.dumps({"error": f"{type(error).__name__}: {error}"}), flush=True)

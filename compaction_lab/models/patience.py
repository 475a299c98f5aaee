"""How long to wait before a call is made again: as long as the server asked for, else jittered exponential backoff."""

from __future__ import annotations

import random
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime

FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.25, 30.0
LONGEST_ASKED_S = 600.0
"""A server that asks for a longer pause than this is not waited for."""

PASSING_STATUS = frozenset({408, 409, 429})
"""Refusals that pass, beside those from 500 on: timeouts, conflicts and too many requests."""

_SERVER_ERROR = 500


def passes(status: int, headers: Mapping[str, str]) -> bool:
    """Whether a refused call may be answered later: by its status, unless the server says otherwise."""
    said = headers.get("x-should-retry")
    return said == "true" if said in ("true", "false") else status in PASSING_STATUS or status >= _SERVER_ERROR


def asked_pause_s(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that a server asks to wait: ``Retry-After-Ms``, or ``Retry-After`` in seconds or as a date.

    Parameters
    ----------
    headers
        Of the answer; names in any case if the mapping allows it, else in lower case.

    Examples
    --------
    >>> asked_pause_s({"retry-after": "7"}), asked_pause_s({"retry-after-ms": "250"}), asked_pause_s({})
    (7.0, 0.25, None)
    """
    for name, unit_s in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        try:
            return max(0.0, float(headers[name]) * unit_s)
        except (KeyError, ValueError):
            continue
    try:
        return max(0.0, parsedate_to_datetime(headers["retry-after"]).timestamp() - time.time())
    except (KeyError, ValueError):
        return None


def backoff_s(attempt: int) -> float:
    """Return the pause after a failed attempt, counted from 0: it doubles, and no two clients wait equally long."""
    longest = min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2**attempt)
    return random.uniform(0.5 * longest, longest)  # noqa: S311 - spreads the waiting, hides nothing

"""Time stamps of recorded formats as seconds since the epoch; a time without a zone is taken as UTC."""

from __future__ import annotations

import math
from datetime import UTC, datetime

from compaction_lab.conversation.messages import JSON

_UNITS = ((1e17, 1e9), (1e14, 1e6), (1e11, 1e3))
"""From how large a number on it counts nano-, micro- or milliseconds; seconds reach 1e11 in the year 5138."""


def epoch_seconds(value: JSON) -> float | None:
    """Return seconds since the epoch, or ``None`` for what is not a time.

    Parameters
    ----------
    value
        ISO 8601 text, or a number (also as text) of seconds, milli-, micro- or nanoseconds.

    Examples
    --------
    >>> epoch_seconds("1970-01-01T00:01:00Z"), epoch_seconds("1767323045000000000"), epoch_seconds("soon")
    (60.0, 1767323045.0, None)
    """
    if isinstance(value, str):
        try:
            found = datetime.fromisoformat(value)
            return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()
        except (ValueError, OverflowError):
            pass
        try:
            number = float(value)
        except ValueError:
            return None
    elif isinstance(value, int | float) and not isinstance(value, bool):
        try:
            number = float(value)
        except OverflowError:
            return None
    else:
        return None
    if not math.isfinite(number) or number <= 0:
        return None
    scale = next((scale for limit, scale in _UNITS if number >= limit), 1.0)
    return number / scale


def seconds_between(start: float | None, end: float | None) -> float | None:
    """Return the time from ``start`` to ``end``, or ``None`` when one is missing or they are in the wrong order."""
    return end - start if start is not None and end is not None and end >= start else None

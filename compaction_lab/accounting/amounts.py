"""Amounts of money as people read them: three digits that count, however small the amount."""

from __future__ import annotations

import math


def usd(amount: float) -> str:
    """Return an amount of US dollars, without the sign of the currency.

    Examples
    --------
    >>> usd(0.0000123), usd(0.01378), usd(2.5), usd(1234.5), usd(0)
    ('0.0000123', '0.0138', '2.50', '1,234.50', '0.00')
    """
    if abs(amount) >= 1 or amount == 0:
        return f"{amount:,.2f}"
    return f"{amount:.{2 - math.floor(math.log10(abs(amount)))}f}"

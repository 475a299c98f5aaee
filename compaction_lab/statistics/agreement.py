"""Agreement of two raters: raw, and corrected for chance in three ways, each missing (``None``) where undefined."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from compaction_lab.errors import StatisticsError


@dataclass(frozen=True, slots=True)
class Agreement:
    """How far two raters agree on the same items.

    Parameters
    ----------
    items
        How many items both rated.
    raw
        The share of items with equal ratings.
    kappa
        Cohen (1960), (p_o - p_e) / (1 - p_e); ``None`` when both raters used one and the same category throughout.
    ac1
        Gwet (2008), which stays meaningful when one category is rare; ``None`` with a single category.
    pabak
        Prevalence- and bias-adjusted kappa (Byrt et al. 1993), (k p_o - 1) / (k - 1); ``None`` with a single category.
    prevalence
        The share of each category over both raters.
    """

    items: int
    raw: float
    kappa: float | None
    ac1: float | None
    pabak: float | None
    prevalence: dict[Hashable, float]


def agreement(
    first: Sequence[Hashable], second: Sequence[Hashable], *, categories: Sequence[Hashable] | None = None
) -> Agreement:
    """Return how far two raters agree.

    Parameters
    ----------
    first, second
        The ratings of the same items in the same order.
    categories
        All categories that could have been used; by default those that were. It decides ``ac1`` and ``pabak``.

    Raises
    ------
    StatisticsError
        If the lists are empty or differ in length.

    Examples
    --------
    >>> agreement([True] * 50, [True] * 50, categories=[True, False]).kappa is None
    True
    """
    if len(first) != len(second) or not first:
        raise StatisticsError(f"ratings: expected two lists of one length, found {len(first)} and {len(second)} items")
    items = len(first)
    used = list(dict.fromkeys([*(categories or ()), *first, *second]))
    one, two = Counter(first), Counter(second)
    raw = sum(a == b for a, b in zip(first, second, strict=True)) / items
    by_chance = sum(one[category] * two[category] for category in used) / items**2
    prevalence = {category: (one[category] + two[category]) / (2 * items) for category in used}
    several = len(used) > 1
    ac1 = pabak = None
    if several:
        gwet = sum(share * (1 - share) for share in prevalence.values()) / (len(used) - 1)
        ac1 = (raw - gwet) / (1 - gwet)
        pabak = (len(used) * raw - 1) / (len(used) - 1)
    kappa = None if one[first[0]] == two[first[0]] == items else (raw - by_chance) / (1 - by_chance)
    return Agreement(items, raw, kappa, ac1, pabak, prevalence)

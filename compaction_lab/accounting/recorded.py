"""What a recording says that its calls used and cost; each call counts once, however many messages state it."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from compaction_lab.accounting.prices import Price
from compaction_lab.accounting.usage import long_cache_write_tokens
from compaction_lab.conversation.messages import Message


def stated(answer: Iterable[Message]) -> Message | None:
    """Return the message of a recorded answer whose usage is the call's: the last, as usage grows while streaming.

    Parameters
    ----------
    answer
        The messages of one response; some logs state the usage of the whole on each of them.
    """
    return next((message for message in reversed(tuple(answer)) if message.usage is not None), None)


def recorded_bill(answer: Iterable[Message], price_of: Callable[[str], Price | None]) -> float | None:
    """Return the US dollars of a recorded call, ``None`` when unknown.

    That is the cost the log states, else its recorded usage at the list price of the model that answered.

    Parameters
    ----------
    answer
        The messages of one response.
    price_of
        The price of a model by its recorded name.
    """
    answer = tuple(answer)
    bills = [message.cost_usd for message in answer if message.cost_usd is not None]
    if bills:
        return max(bills)
    message = stated(answer)
    if message is None or message.usage is None or not message.model:
        return None
    price = price_of(message.model)
    if price is None:
        return None
    return price.cost(message.usage, long_cache_write_tokens=long_cache_write_tokens(message.usage))

"""Writes sessions.jsonl: ten help desk sessions from templates and a seed, as OpenAI chat messages.

Nobody said any of it. Each session opens with orders looked up by tools; later questions need values from then.
"""

from __future__ import annotations

import json
import random
from pathlib import Path

GOODS = ("kettle", "desk lamp", "bicycle pump", "rain jacket", "office chair", "coffee grinder", "tent", "rucksack")
CITIES = ("Aarhus", "Bergen", "Gdansk", "Leiden", "Porto", "Tartu")
Message = dict[str, object]


def order(draw: random.Random) -> dict[str, object]:
    """Return an order as the shop's system would print it, with more in it than anyone asks for."""
    lines = [
        {"sku": f"SKU-{draw.randrange(10**5):05}", "name": draw.choice(GOODS), "price_eur": draw.randrange(9, 240)}
        for _ in range(3)
    ]
    return {
        "order": f"ORD-{draw.randrange(10**6):06}",
        "city": draw.choice(CITIES),
        "lines": lines,
        "parcel": f"PKG{draw.randrange(10**8):08}",
        "events": [{"at": f"2026-03-{day:02}T08:{day:02}", "depot": draw.choice(CITIES)} for day in range(1, 9)],
    }


def asked(
    draw: random.Random, messages: list[Message], text: str, tool: str, arguments: object, result: object
) -> None:
    """Add a question, the call that it takes, and what the call returns."""
    call = {"name": tool, "arguments": json.dumps(arguments)}
    name = f"call_{draw.randrange(16**8):08x}"
    messages += [
        {"role": "user", "content": text},
        {"role": "assistant", "content": None, "tool_calls": [{"id": name, "type": "function", "function": call}]},
        {"role": "tool", "tool_call_id": name, "content": json.dumps(result)},
    ]


def session(number: int) -> dict[str, object]:
    """Return one session of eight to twelve questions."""
    draw = random.Random(number)
    messages: list[Message] = [{"role": "system", "content": "You help customers of a shop. Look things up; be brief."}]
    orders = [order(draw) for _ in range(draw.randrange(4, 7))]
    for at, found in enumerate(orders):
        mail = f"customer{draw.randrange(1000)}@example.org"
        asked(draw, messages, f"What is in order {at + 1} of {mail}?", "find_order", {"mail": mail, "at": at}, found)
        first = found["lines"][0]  # type: ignore[index]
        said = f"Order {found['order']} goes to {found['city']}; it starts with {first['sku']}, a {first['name']}."
        messages.append({"role": "assistant", "content": said})
    for at in draw.sample(range(len(orders)), 4):
        found = orders[at]
        if draw.random() < 0.5:  # noqa: PLR2004 - half of the questions
            where = {"parcel": found["parcel"], "depot": draw.choice(CITIES), "days_left": draw.randrange(1, 6)}
            asked(
                draw,
                messages,
                f"And where is the parcel of order {at + 1}?",
                "track_parcel",
                {"parcel": found["parcel"]},
                where,
            )
            messages.append({"role": "assistant", "content": f"Parcel {found['parcel']} is in {where['depot']}."})
        else:
            line = found["lines"][draw.randrange(3)]  # type: ignore[index]
            stock = {"sku": line["sku"], "left": draw.randrange(40), "depot": draw.choice(CITIES)}
            asked(
                draw,
                messages,
                f"Is the {line['name']} of order {at + 1} still to be had?",
                "check_stock",
                {"sku": line["sku"]},
                stock,
            )
            messages.append({"role": "assistant", "content": f"{stock['left']} pieces of {line['sku']} are left."})
    return {"id": f"help-desk-{number:02}", "messages": messages}


if __name__ == "__main__":
    lines = "".join(json.dumps(session(number)) + "\n" for number in range(10))
    Path(__file__).with_name("sessions.jsonl").write_text(lines, encoding="utf-8")

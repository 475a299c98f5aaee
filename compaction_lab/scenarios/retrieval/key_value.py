"""Key-value retrieval: the value of one key in a JSON object of random identifiers, at chosen places."""

from __future__ import annotations

import json
import random
import uuid
from collections.abc import Iterator, Sequence
from typing import cast

from compaction_lab.conversation.transcript import Transcript
from compaction_lab.errors import ConfigurationError
from compaction_lab.scenarios.retrieval.placing import Example, Task, placed, public_rows

INSTRUCTION = "Answer questions about the JSON object that you are shown. Reply with the value alone."
PUBLIC_ITEMS = 75


def key_value(task: Task) -> list[Transcript]:
    """Return each example with its pair at each place.

    Raises
    ------
    ConfigurationError
        The public records have another number of pairs.
    """
    examples = _public(task) if task.source == "public" else _own(task)
    return [transcript for example in examples for transcript in placed(task, example, INSTRUCTION, _layout)]


def _own(task: Task) -> Iterator[Example]:
    for number in range(task.examples):
        draw = random.Random(f"key_value {task.seed} {number}")  # noqa: S311 - a seeded draw, nothing secret
        ids = [str(uuid.UUID(int=draw.getrandbits(128), version=4)) for _ in range(2 * task.items)]
        pairs = list(zip(ids[::2], ids[1::2], strict=True))
        yield _example(f"kv{task.items}-{number:03d}", *pairs[0], pairs[1:])


def _public(task: Task) -> Iterator[Example]:
    if task.items != PUBLIC_ITEMS:
        raise ConfigurationError(f"dataset.items={task.items}: the public records have {PUBLIC_ITEMS} pairs")
    for number, row in enumerate(public_rows(f"kv-retrieval-{PUBLIC_ITEMS}_keys.jsonl.gz", task.examples)):
        key, value = str(row["key"]), str(row["value"])
        pairs = [(a, b) for a, b in cast("list[list[str]]", row["ordered_kv_records"]) if a != key]
        yield _example(f"kv{PUBLIC_ITEMS}-public-{number:03d}", key, value, pairs)


def _example(name: str, key: str, value: str, others: Sequence[tuple[str, str]]) -> Example:
    question = f"Which value does the key {json.dumps(key)} have?"
    return Example(name, question, (value,), _pair(key, value), [_pair(*other) for other in others])


def _pair(key: str, value: str) -> str:
    return f"{json.dumps(key)}: {json.dumps(value)}"


def _layout(pairs: Sequence[str]) -> str:
    return "{" + ",\n ".join(pairs) + "}"

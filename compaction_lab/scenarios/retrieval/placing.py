"""How an example becomes transcripts: where its answer stands, what stands around it, and how it is asked."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from compaction_lab.conversation.messages import JSON, system, user
from compaction_lab.conversation.transcript import Probe, Transcript
from compaction_lab.errors import ConfigurationError

DATA = "COMPACTION_LAB_DATA"
Around = Literal["full", "oracle", "none"]
"""What is shown: all items, the one that answers, or nothing (closed book)."""


@dataclass(frozen=True, slots=True)
class Task:
    """What to ask.

    Parameters
    ----------
    items
        Pairs or documents shown.
    examples
        How many questions.
    places
        How many places the answer stands at, spread evenly from the first item to the last.
    shown
        See :data:`Around`; with anything but ``full`` each question is asked once.
    source
        ``own`` generator, or the ``public`` data of the paper.
    seed
        Of everything drawn.
    """

    items: int
    examples: int
    places: int = 5
    shown: Around = "full"
    source: Literal["own", "public"] = "own"
    seed: int = 0

    @classmethod
    def of(cls, node: Mapping[str, JSON]) -> Task:
        """Read a dataset node.

        Raises
        ------
        ConfigurationError
            A parameter is no whole number in range or no known word.
        """
        numbers = {}
        for name, least in (("items", 1), ("examples", 1), ("places", 1), ("seed", 0)):
            value = node.get(name)
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise ConfigurationError(f"dataset.{name}={value!r}; expected a whole number of at least {least}")
            numbers[name] = value
        shown, source = node.get("shown"), node.get("source")
        if shown not in get_args(Around):
            raise ConfigurationError(f"dataset.shown={shown!r}; expected one of {', '.join(get_args(Around))}")
        if source not in ("own", "public"):
            raise ConfigurationError(f"dataset.source={source!r}; expected own or public")
        return cls(shown=shown, source=source, **numbers)  # type: ignore[arg-type]

    def indices(self) -> list[int]:
        """Return the places of the answer among the items, the first and the last included.

        Examples
        --------
        >>> Task(140, 1).indices(), Task(20, 1).indices(), Task(10, 1, places=3).indices()
        ([0, 34, 69, 104, 139], [0, 4, 9, 14, 19], [0, 4, 9])
        """
        if self.shown != "full" or self.places == 1:
            return [0]
        steps = self.places - 1
        return list(dict.fromkeys((self.items - 1) * step // steps for step in range(self.places)))


@dataclass(frozen=True, slots=True)
class Example:
    """A question, the item that answers it, and items that do not, most misleading first."""

    id: str
    question: str
    gold: tuple[str, ...]
    answering: str
    others: Sequence[str]


def placed(
    task: Task, example: Example, instruction: str, layout: Callable[[Sequence[str]], str]
) -> Iterator[Transcript]:
    """Yield an example at each of its places.

    The probe's id is ``at-<index>-of-<items>``; its evidence is the answering item as it stands in the text.
    """
    for index in task.indices():
        items: list[str] = []
        if task.shown == "oracle":
            items = [example.answering]
        elif task.shown == "full":
            items = [*example.others[:index], example.answering, *example.others[index : task.items - 1]]
        messages = (system(instruction), *([user(layout(items))] if items else []))
        total = len(items)
        probe = Probe(
            f"at-{index}-of-{total}", "retrieval", example.question, example.gold, (example.answering,) if items else ()
        )
        yield Transcript(f"{example.id}@{index}", messages, probes=(probe,))


def public_rows(file: str, examples: int) -> list[dict[str, JSON]]:
    """Return the first rows of a file of the paper's repository.

    Raises
    ------
    ConfigurationError
        The user's data folder has no such file.
    """
    root = os.environ.get(DATA)
    path = Path(root or ".") / "published" / "lost_in_the_middle" / file
    if not root or not path.is_file():
        raise ConfigurationError(
            f"dataset.source=public: {path} is not there; set {DATA} to a folder with published/lost_in_the_middle/ "
            "(files of github.com/nelson-liu/lost-in-the-middle), or use dataset.source=own"
        )
    rows: list[dict[str, JSON]] = []
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            rows.append(json.loads(line))
            if len(rows) == examples:
                break
    return rows

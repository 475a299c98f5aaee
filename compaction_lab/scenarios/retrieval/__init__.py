"""Questions about one place in a long text: key-value pairs and documents, after Lost in the Middle (TACL 2024).

Each example is asked once for every place its answer may stand at. The texts, prompts and generators are our own; the
public records and passages are read from the user's data folder when asked for.
"""

from __future__ import annotations

from collections.abc import Mapping

from compaction_lab.conversation.messages import JSON
from compaction_lab.conversation.transcript import Transcript
from compaction_lab.errors import ConfigurationError
from compaction_lab.scenarios.retrieval.placing import Task


def retrieval_transcripts(node: Mapping[str, JSON]) -> list[Transcript]:
    """Return the transcripts of a ``retrieval`` dataset node: an example at a place each.

    Raises
    ------
    ConfigurationError
        A parameter is out of range, or public data is asked for and absent.
    """
    name = node.get("task")
    if name == "key_value":
        from compaction_lab.scenarios.retrieval.key_value import key_value

        return key_value(Task.of(node))
    if name == "multi_document":
        from compaction_lab.scenarios.retrieval.multi_document import multi_document

        return multi_document(Task.of(node))
    raise ConfigurationError(f"dataset.task={name!r}; expected key_value or multi_document")

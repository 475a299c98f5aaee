"""``manifest.json``: where a run came from, the latest invocation first and all of them kept."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

from compaction_lab.conversation.messages import JSON
from compaction_lab.errors import StoreError

FILE = "manifest.json"


def read(folder: Path) -> dict[str, JSON]:
    """Return a run's manifest, empty when it has none yet.

    Raises
    ------
    StoreError
        If the file is not a JSON object.
    """
    path = folder / FILE
    try:
        found = json.loads(path.read_bytes())
    except FileNotFoundError:
        return {}
    except ValueError as error:
        message = f"{path}: {error}; expected one JSON object. Restore it or delete it, the next run writes a new one"
        raise StoreError(message) from error
    if not isinstance(found, dict):
        raise StoreError(f"{path}: expected one JSON object, found {type(found).__name__}; delete it and run again")
    return found


def record(folder: Path, invocation: Mapping[str, JSON]) -> None:
    """Write the manifest of a new invocation through a temporary file and a rename.

    The keys of the newest invocation stand at the top; ``invocations`` lists every one in order, the newest included.

    Raises
    ------
    StoreError
        If the folder cannot be written or ``invocation`` is not JSON.
    """
    history = read(folder).get("invocations")
    invocations = [*(history if isinstance(history, list) else []), dict(invocation)]
    replace(folder / FILE, {**invocation, "invocations": invocations})


def replace(path: Path, value: Mapping[str, JSON]) -> None:
    """Replace a JSON file in one step: readers see the old one or the new one, never a part."""
    try:
        text = json.dumps(value, indent=2, allow_nan=False) + "\n"
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False) as file:
            try:
                file.write(text.encode())
                file.flush()
                os.fsync(file.fileno())
                Path(file.name).chmod(0o644)
                Path(file.name).replace(path)
            except OSError:
                Path(file.name).unlink(missing_ok=True)
                raise
    except (TypeError, ValueError) as error:
        raise StoreError(f"{path}: {error}; a manifest holds JSON values only") from error
    except OSError as error:
        raise StoreError(f"{path}: {error.strerror}; a run needs a folder it may write to") from error

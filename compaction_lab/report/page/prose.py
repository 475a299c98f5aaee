"""The Markdown that our own analysis writes (headings, paragraphs, lists, code, bold), as HTML; all text is escaped."""

from __future__ import annotations

import html
import re


def html_prose(markdown: str) -> str:
    r"""Return Markdown as HTML; headings are moved down by two levels, the page has its own.

    >>> html_prose("# Said\n\n**Never** <worse>:\n\n- `a`\n- b\n")
    '<h3>Said</h3><p><strong>Never</strong> &lt;worse&gt;:</p><ul><li><code>a</code></li><li>b</li></ul>'
    """
    parts = []
    for number, piece in enumerate(re.split(r"^```\w*\n(.*?)^```$", markdown, flags=re.DOTALL | re.MULTILINE)):
        if number % 2:
            parts.append(f"<pre>{html.escape(piece.rstrip())}</pre>")
        else:
            parts += [_block(block) for block in re.split(r"\n\s*\n", piece.strip()) if block.strip()]
    return "".join(parts)


def _block(block: str) -> str:
    lines = block.strip().splitlines()
    heading = re.match(r"(#+) (.*)", lines[0])
    if heading:
        level = min(6, len(heading[1]) + 2)
        return f"<h{level}>{_inline(heading[2])}</h{level}>" + (_block("\n".join(lines[1:])) if lines[1:] else "")
    if lines[0].startswith("- "):
        items = "".join(f"<li>{_inline(line[2:])}</li>" for line in "\n".join(lines).replace("\n  ", " ").split("\n"))
        return f"<ul>{items}</ul>"
    return f"<p>{_inline(' '.join(lines))}</p>"


def _inline(text: str) -> str:
    escaped = re.sub(r"\*\*(.+?)\*\*", r"<strong>\1</strong>", html.escape(text))
    return re.sub(r"`(.+?)`", r"<code>\1</code>", escaped)

"""What a run looks like in print: figures, tables and their files. The analysis behind them is not done here.

A page that shows a run in a browser belongs beside :mod:`compaction_lab.report.writing`, from the same frames.
"""

from compaction_lab.report.style import Look, figure_style
from compaction_lab.report.tables import to_csv, to_markdown, to_tex, to_text
from compaction_lab.report.writing import report_tables, terminal_table, write_report

__all__ = [
    "Look",
    "figure_style",
    "report_tables",
    "terminal_table",
    "to_csv",
    "to_markdown",
    "to_tex",
    "to_text",
    "write_report",
]

"""The report as one self-contained HTML file: summary, table, figures, firings, misses, and the context view."""

from compaction_lab.report.page.writing import write_page

__all__ = ["write_page"]

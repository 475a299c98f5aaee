"""The report as one self-contained HTML file: summary, table, figures, firings, misses, and the context view."""

from compaction_lab.report.page.writing import NAME, picture_files, write_page

__all__ = ["NAME", "picture_files", "write_page"]

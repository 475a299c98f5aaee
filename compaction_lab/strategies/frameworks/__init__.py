"""One framework a file: its own parameter names and conventions, mapped onto the mechanisms."""

"""One verb of the command line a file: its arguments, and what it does; nothing heavy is imported before it runs."""

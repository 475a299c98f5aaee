"""One mechanism a file: what is removed, replaced or rewritten, with every convention an explicit option."""

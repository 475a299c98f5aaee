"""Published studies recomputed from their public data, one study a file; :mod:`.registry` lists them."""

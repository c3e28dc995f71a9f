"""The vault, and how it finds secrets: in every spelling, and keys by their shape."""

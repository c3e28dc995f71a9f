"""Bytes at rest: the log, the blobs, the secrets' vault, the seal, and one reader over all of it."""

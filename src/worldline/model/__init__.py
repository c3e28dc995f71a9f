"""The data model of a recording: events, ids, keys, manifests and wire dialects. Pure: no I/O, no clock."""

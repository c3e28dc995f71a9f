"""Time: the only layer that decides whether a crossing is live, recorded or mocked."""

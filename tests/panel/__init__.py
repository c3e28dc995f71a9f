"""The panel as its users meet it: real recordings, opened in a real browser."""

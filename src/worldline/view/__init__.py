"""The replay panel: the built page, and the server on this machine that gives it a recording, finished or live."""

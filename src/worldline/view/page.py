"""The built page of the panel, as it lies in the package."""

from __future__ import annotations

from importlib import resources

PAGE = "viewer.html"


def viewer_page() -> bytes:
    """`viewer.html`: one file, all that runs in the panel."""
    return resources.files("worldline.view").joinpath(PAGE).read_bytes()

"""Policies: what may happen on a live branch."""

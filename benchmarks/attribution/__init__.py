"""Agents with a planted fault whose exact truth is known, and how well the attribution finds it."""

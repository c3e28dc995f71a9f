"""Bundles: one file of a sealed run that any ZIP tool opens, written, read and verified."""

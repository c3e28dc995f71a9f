"""Derived bundles: a sealed recording again, without what rules take out of it."""

"""Faults that are planted on purpose, to see that the tests notice: `python -m tests.mutants [NAME|AREA...]`."""

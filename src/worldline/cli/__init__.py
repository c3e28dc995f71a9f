"""The command line: one file per verb, one place that prints."""

"""What it costs to keep an environment, and to branch from there, beside what one would do by hand."""

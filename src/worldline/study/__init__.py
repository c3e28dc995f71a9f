"""Studies: which step caused it, would another action have saved it, which of two is better. Many forks of one run."""

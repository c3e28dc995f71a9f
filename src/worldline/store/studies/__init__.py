"""Studies at rest: a journal for each, the rollouts it kept, and one derived SQLite file over all of a store."""

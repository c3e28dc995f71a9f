"""Speed as ratios against a real peer, measured in turns in one run. `make bench` prints the table."""

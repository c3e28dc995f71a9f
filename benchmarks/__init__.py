"""Speed as ratios against real peers, measured in turns in one run. `make bench` prints the table.

A *contest* is pieces of work that are measured in turns (`measure`); a *row* of the table compares some of them and has
a target. One module a subject holds its contests; `table` prints, `page` keeps the result in the documentation.
"""

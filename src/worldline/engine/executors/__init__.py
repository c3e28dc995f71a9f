"""Executors: where a batch of jobs is carried out. One protocol, three ways: here, in processes, as tasks of a loop."""

"""Which step caused it: methods that ask for rollouts and turn their outcomes into an attribution. Pure, no I/O."""

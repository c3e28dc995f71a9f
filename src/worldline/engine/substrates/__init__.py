"""Environment halves of checkpoints: one protocol, and one file for each way of keeping an environment."""

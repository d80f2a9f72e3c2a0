"""Run folders: records, checkpoints, everything that touches the disk."""

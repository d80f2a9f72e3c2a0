"""Everything that leaves the process: folders, tables, checkpoints, segments, sinks."""

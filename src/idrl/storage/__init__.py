"""Everything that leaves the process: folders, tables, checkpoints, segments, sinks."""

import sys

if sys.platform == "win32":  # no flock, no SIGHUP: what runs survive by
    raise ImportError("idrl trains on Linux and macOS; on Windows use WSL.")

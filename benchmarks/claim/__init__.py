"""The paper's claim, measured: what is made of the studies `minatar` and `atari-short`."""

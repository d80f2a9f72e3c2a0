"""The machine and the terminal: devices, signals, words that are safe to print."""

"""The environments that have a name of their own, one file each."""

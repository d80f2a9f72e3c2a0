"""Studies: agents × environments × seeds × settings as one file, one command and one folder."""

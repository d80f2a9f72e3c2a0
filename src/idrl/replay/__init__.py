"""What was seen, and which of it is drawn: a ring of rows, a tree of priorities."""

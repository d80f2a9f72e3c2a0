"""One page on a run that has just ended: what it learned, how sure it became, and why it acted."""

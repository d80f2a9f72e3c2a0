"""idrl beside what one would use instead: the same work, in turns, on the same machine."""

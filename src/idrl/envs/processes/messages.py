"""What a run and a process of its environments tell each other: a byte, and what belongs to it."""

# To a process.
STEP = b"s"  # what lies in the shared memory
REPLAY = b"r"  # a pickled History

# From it: any number of the first two, then one of the others.
WARNED = b"w"  # a pickled warning
DID = b"d"  # so many steps of a replay
DONE = b"."
REFUSED = b"e"  # the sentence of an IdrlError
FAILED = b"f"  # anything else


def data(text: str) -> bytes:
    """Whatever an error may say, such as a name of a file that is no text."""
    return text.encode("utf-8", "surrogatepass")


def text(data: bytes) -> str:
    return data.decode("utf-8", "surrogatepass")

"""What the command line prints, and what happens where it cannot be printed.

One printer for everything: text is text, never markup, and nothing in it reaches the terminal as a
command. Output that cannot be written ends no run: what is left to say is dropped, the work goes
on, and the exit status tells.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
from collections.abc import Iterator
from typing import Any

from rich.console import Console
from rich.text import Text

from idrl.system.words import sentence, spelled, visible


class Printer(Console):
    """A console to which every text is a text."""

    def __init__(self, **options: Any):
        super().__init__(markup=False, emoji=False, highlight=False, **options)
        if "TTY_INTERACTIVE" not in os.environ:
            # FORCE_COLOR, which notebooks and CI set, asks for colours where nothing is drawn over
            self.is_interactive = self.is_interactive and self.file.isatty()

    def render_str(self, text: str, **options: Any) -> Text:
        """All texts pass here, in tables and their titles too."""
        plain = spelled(visible(text, keep="\n\t"), self.encoding)
        return super().render_str(plain, **options | {"markup": False, "emoji": False})

    def say(self, text: Any) -> None:
        """A sentence of ours, on a line of its own."""
        self.print(f"idrl: {sentence(text)}", soft_wrap=True)


class Output(io.TextIOBase):
    """A stream that never raises. `error` is why it went silent."""

    def __init__(self, stream: Any):
        self.stream = stream  # None where the process was started without one
        self.error: Exception | None = None

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return getattr(self.stream, "encoding", None) or "utf-8"

    def writable(self) -> bool:
        return True

    def isatty(self) -> bool:
        return self.stream is not None and self.stream.isatty()

    def fileno(self) -> int:
        if self.stream is None:
            raise io.UnsupportedOperation("fileno")
        return self.stream.fileno()

    def write(self, text: str) -> int:
        if self.stream is not None and self.error is None:
            try:
                self.stream.write(spelled(text, self.encoding))
            except (OSError, ValueError) as error:  # ValueError: it was closed
                self.error = error
        return len(text)

    def flush(self) -> None:
        if self.stream is not None and self.error is None:
            try:
                self.stream.flush()
            except (OSError, ValueError) as error:
                self.error = error

    def end(self) -> None:
        """Say the last of it. What cannot be written is thrown away, so that Python does not try
        once more when it ends."""
        self.flush()
        if self.error is not None:
            with contextlib.suppress(OSError, ValueError):
                nowhere = os.open(os.devnull, os.O_WRONLY)
                os.dup2(nowhere, self.fileno())
                os.close(nowhere)


@contextlib.contextmanager
def outputs() -> Iterator[tuple[Output, Output]]:
    """Both of this process's streams, for everybody who prints."""
    ours = Output(sys.stdout), Output(sys.stderr)
    with contextlib.redirect_stdout(ours[0]), contextlib.redirect_stderr(ours[1]):
        try:
            yield ours
        finally:
            for one in ours:
                one.end()

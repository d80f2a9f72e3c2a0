"""A GIF that is written frame by frame; Matplotlib's writer holds all of them until the end."""

from __future__ import annotations

from io import BytesIO
from typing import Any

from matplotlib.animation import AbstractMovieWriter
from PIL import Image, ImageChops
from PIL.GifImagePlugin import getdata, getheader

_SAME = 255  # the colour of pixels that stay as they are
_SUM = (1.0, 1.0, 1.0, 0.0)  # of the channels: a small change of one is a change


class GifWriter(AbstractMovieWriter):
    """Of each frame but the first it writes the part that changes."""

    def setup(self, fig: Any, outfile: Any, dpi: Any = None) -> None:
        super().setup(fig, outfile, dpi)
        self._file = open(outfile, "wb")  # noqa: SIM115 (finish closes it)
        self._before: Image.Image | None = None

    def grab_frame(self, **savefig: Any) -> None:
        drawn = BytesIO()
        self.fig.savefig(drawn, **savefig, format="rgba", dpi=self.dpi)
        frame = Image.frombytes("RGBA", self.frame_size, drawn.getvalue()).convert("RGB")
        said: dict[str, Any] = {"duration": int(1000 / self.fps)}
        if self._before is None:
            part, place = _paletted(frame), (0, 0)
            self._file.writelines(getheader(part, info={"loop": 0, **said})[0])
        else:
            change = ImageChops.difference(frame, self._before)
            # One that is like the one before it is a frame nevertheless, of a single pixel.
            box = change.getbbox() or (0, 0, 1, 1)
            part, place = _paletted(frame.crop(box)), box[:2]
            same = change.crop(box).convert("L", _SUM).point(lambda x: 0 if x else 255)
            part.paste(_SAME, mask=same)
            said |= {"transparency": _SAME, "disposal": 1}
        self._file.writelines(getdata(part, place, include_color_table=True, **said))
        self._before = frame

    def finish(self) -> None:
        self._file.write(b";")
        self._file.close()


def _paletted(frame: Image.Image) -> Image.Image:
    """With the colours that suit it best, and room for one more."""
    part = frame.convert("P", palette=Image.Palette.ADAPTIVE, colors=_SAME)
    colours = part.getpalette() or []
    part.putpalette(colours + [0] * (768 - len(colours)))
    return part

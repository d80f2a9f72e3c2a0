"""Where a study lives: a folder, or any place that fsspec knows by an address such as s3://….

A run folder needs a real disk (it is locked, cut and renamed in). At an address it is worked on in
a local folder and copied: at every new checkpoint and at its end, and back before it goes on.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

from idrl.errors import IdrlError
from idrl.storage.files import LARGEST, read_text, write_whole


def open_store(where: str) -> Store:
    return Remote(where) if "://" in where else Store(where)


class Store:
    """A study's folder on a disk that every worker sees under the same name."""

    def __init__(self, where: str):
        self.where = str(Path(where).absolute())
        self.local = Path(self.where)

    def read(self, name: str, most: int = LARGEST) -> str | None:
        """None where there is no such file."""
        try:
            return read_text(self.local / name, f"{name!r} in {self.where!r}", most)
        except FileNotFoundError:
            return None

    def write(self, name: str, text: str) -> None:
        path = self.local / name
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(path, text)
        except OSError as error:
            raise IdrlError(f"{str(path)!r} cannot be written: {error}.") from None

    def remove(self, name: str) -> None:
        (self.local / name).unlink(missing_ok=True)

    def exists(self) -> bool:
        return self.local.exists() and (not self.local.is_dir() or any(self.local.iterdir()))

    def run(self, name: str) -> Path:
        """Where a run folder is worked on."""
        return self.local / "runs" / name

    def fetch(self, name: str) -> None:
        """Bring a run folder to where it is worked on; here it is there."""

    def push(self, name: str) -> None:
        """Bring a run folder from where it is worked on to where it is kept; here it is there."""

    def discard(self, name: str) -> None:
        shutil.rmtree(self.run(name), ignore_errors=True)


class Remote(Store):
    """A study at an address. What is here is a copy to work on."""

    def __init__(self, where: str):
        try:
            import fsspec
        except ImportError:
            raise IdrlError(f"{where!r} needs fsspec: pip install 'idrl[sweep]'.") from None
        self.where = where.rstrip("/")
        digest = hashlib.sha256(self.where.encode()).hexdigest()[:12]
        scratch = os.environ.get("IDRL_SCRATCH")
        base = Path(scratch) if scratch else Path(tempfile.gettempdir()) / f"idrl-{os.getuid()}"
        self.local = base / digest
        try:
            self.fs, self.root = fsspec.core.url_to_fs(self.where)
        except (ImportError, ValueError) as error:
            raise IdrlError(f"{where!r} cannot be opened: {error}.") from None
        self.local.mkdir(parents=True, exist_ok=True)

    def read(self, name: str, most: int = LARGEST) -> str | None:
        path = f"{self.root}/{name}"
        try:
            data = self.fs.cat_file(path, end=most + 1)
            if len(data) > most:
                raise IdrlError(f"{path!r} is larger than the {most:,} bytes that are read.")
            return data.decode()
        except FileNotFoundError:
            return None
        except UnicodeDecodeError as error:
            raise IdrlError(f"{path!r} cannot be read: {error}.") from None

    def write(self, name: str, text: str) -> None:
        path = f"{self.root}/{name}"
        try:
            self.fs.makedirs(path.rpartition("/")[0], exist_ok=True)
            self.fs.pipe_file(path, text.encode())
        except OSError as error:
            raise IdrlError(f"{self.where}/{name} cannot be written: {error}.") from None

    def remove(self, name: str) -> None:
        if self.fs.exists(f"{self.root}/{name}"):
            self.fs.rm_file(f"{self.root}/{name}")

    def exists(self) -> bool:
        return bool(self.fs.exists(self.root) and self.fs.ls(self.root))

    def fetch(self, name: str) -> None:
        """What is kept is what counts: another machine may have gone on."""
        kept, here = f"{self.root}/runs/{name}", self.run(name)
        if not self.fs.exists(kept):
            return
        shutil.rmtree(here, ignore_errors=True)
        for path in self.fs.find(kept):
            target = here / path[path.index(f"runs/{name}/") + len(f"runs/{name}/") :]
            if ".." in target.parts:
                raise IdrlError(f"{path!r} leads out of its run.")
            target.parent.mkdir(parents=True, exist_ok=True)
            self.fs.get_file(path, str(target))

    def push(self, name: str) -> None:
        """Checkpoints first: tables that are longer than a checkpoint says are cut, shorter ones
        are damage. One that is deleted meanwhile is left out; what is kept of it goes too."""
        here, kept = self.run(name), f"{self.root}/runs/{name}"
        files = [p for p in here.rglob("*") if p.is_file() and not _passing(p, here)]
        files.sort(key=lambda p: (_rank(p, here), p.name == "manifest.json", str(p)))
        sent = set()
        for file in files:
            target = f"{kept}/{file.relative_to(here).as_posix()}"
            try:
                self._send(file, target)
                sent.add(target)
            except FileNotFoundError:
                continue
        for path in self.fs.find(kept):
            if not any(path.endswith(target.lstrip("/")) for target in sent):
                self.fs.rm_file(path)

    def _send(self, file: Path, target: str) -> None:
        whole = file.suffix not in (".csv", ".json", ".toml")  # checkpoints and frames stay as is
        if whole and self.fs.exists(target) and self.fs.size(target) == file.stat().st_size:
            return
        self.fs.makedirs(target.rpartition("/")[0], exist_ok=True)
        self.fs.put_file(str(file), target)

    def discard(self, name: str) -> None:
        super().discard(name)
        kept = f"{self.root}/runs/{name}"
        if self.fs.exists(kept):
            self.fs.rm(kept, recursive=True)


def _passing(path: Path, folder: Path) -> bool:
    """Drafts, locks, and what is on its way out."""
    return any(part.startswith(".") for part in path.relative_to(folder).parts)


def _rank(path: Path, folder: Path) -> int:
    first: Any = path.relative_to(folder).parts[0]
    return {"checkpoints": 0, "replay": 1}.get(first, 2)

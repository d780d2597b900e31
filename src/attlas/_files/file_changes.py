"""Every change that attlas makes to a file system, each in one step.

Content is written to a hidden draft beside its place, which then takes the place's name. A folder
has one writer at a time, who holds its lock. Drafts carry the name of the machine: those that the
holder of the lock sees from its own machine belong to a process that died.

Data that a document names are in `<stem>@<first 16 digits of their sha256><end>`, so that old and
new data coexist. Renaming the document replaces the pair; only then the old data are deleted.
Whoever reads finds the old pair or the new one, even if the writer dies. Earlier versions of attlas
wrote the data to `<stem><end>`, which is read if it is alone.
"""

import contextlib
import hashlib
import os
import platform
import re
import shutil
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None
DRAFT = ".draft"
_CONTENT = re.compile(r"@[0-9a-f]{16}")
_DRAFT = re.compile(r"\.([0-9a-f]{8})(?:-\d+-\d+)?\.draft$")
_of_thread = threading.local()


def make_folder(folder: Path) -> None:
    """Create a folder and the missing ones above it, however many.

    Raises:
        OSError: if one of them cannot be created.
    """
    missing = []
    while not folder.is_dir() and folder.parent != folder:
        missing.append(folder)
        folder = folder.parent
    # Not `mkdir(parents=True)`, which calls itself once per level.
    for path in reversed(missing):
        path.mkdir(exist_ok=True)


def write_file(target: Path, content: Iterable[bytes], *, durable: bool = True) -> None:
    """Write a file completely or not at all; an old file is replaced in one step.

    Args:
        target: the file; its folder is created if missing.
        content: blocks of bytes, in their order.
        durable: whether content and name are on the disk when the function returns.

    Raises:
        OSError: if the system refuses; the old file then stays.

    Examples:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     write_file(Path(folder) / "a" / "b.txt", [b"who", b"le"])
        ...     (Path(folder) / "a" / "b.txt").read_text()
        'whole'
    """
    make_folder(target.parent)
    with folder_lock(target.parent) as is_alone:
        draft = draft_path(target, is_alone=is_alone)
        try:
            with draft.open("wb") as file:
                for block in content:
                    file.write(block)
                if durable:
                    file.flush()
                    os.fsync(file.fileno())
            draft.replace(target)
        finally:
            with contextlib.suppress(OSError):
                draft.unlink(missing_ok=True)
        if durable:
            synchronise(target.parent)


def draft_path(target: Path, *, is_alone: bool) -> Path:
    """The hidden draft beside a file, one for each machine; without a lock one for each thread.

    Examples:
        >>> draft_path(Path("a.txt"), is_alone=True).suffix
        '.draft'
    """
    writer = "" if is_alone else f"-{os.getpid()}-{threading.get_ident()}"
    return target.with_name(f".{target.name}.{machine()}{writer}{DRAFT}")


@cache
def machine() -> str:
    """Eight digits for the name of this machine: locks are held on one machine alone on some disks.

    Examples:
        >>> len(machine())
        8
    """
    return hashlib.sha256(platform.node().encode()).hexdigest()[:8]


def move_file(source: Path, target: Path) -> None:
    """Rename a file or folder, durably; nothing happens if it has left meanwhile.

    Raises:
        OSError: if the system refuses.
    """
    with contextlib.suppress(FileNotFoundError):
        source.replace(target)
    synchronise(source.parent)
    if target.parent != source.parent:
        synchronise(target.parent)


def remove_file(path: Path) -> None:
    """Delete a file, if it exists.

    Raises:
        OSError: if the system refuses.
    """
    path.unlink(missing_ok=True)


def remove_folder(folder: Path) -> None:
    """Delete a folder with its content, and the folder above it if that is then empty.

    Documents go first: data without one are no pair, so that a removal may end anywhere.
    """
    with contextlib.suppress(OSError):
        for document in folder.rglob("*.json"):
            remove_file(document)
    shutil.rmtree(folder, ignore_errors=True)
    with contextlib.suppress(OSError):
        folder.parent.rmdir()


def synchronise(folder: Path) -> None:
    """Synchronise the names in a folder to disk, if the system can.

    Raises:
        OSError: if the disk fails.
    """
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


@contextlib.contextmanager
def folder_lock(folder: Path) -> Iterator[bool]:
    """Wait until no other process or thread holds the lock of a folder, then hold it.

    The lock is on the folder itself (`flock`): it needs no file, and the system releases it when
    the process dies. A thread that holds it may acquire it again.

    Yields:
        Whether the lock is held. It is not if the system (Windows) or the file system has no
        locks, or if the folder is missing or not readable. NFS locks folders on one machine alone.

    Examples:
        >>> with folder_lock(Path.cwd()) as first, folder_lock(Path.cwd()) as second:
        ...     first == second
        True
    """
    place = os.path.realpath(folder)
    places: set[str] = _of_thread.__dict__.setdefault("places", set())
    if place in places:
        yield True
        return
    handle = _locked(place)
    if handle is None:
        yield False
        return
    places.add(place)
    try:
        yield True
    finally:
        places.discard(place)
        _release(handle)


def _locked(place: str) -> int | None:
    """A handle of the folder that holds its lock; None if it cannot be locked."""
    if fcntl is None:
        return None
    try:
        handle = os.open(place, os.O_RDONLY)
    except OSError:
        return None
    is_held = False
    try:
        with contextlib.suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_EX)
            is_held = True
    finally:  # also where a user interrupts the waiting
        if not is_held:
            os.close(handle)
    return handle if is_held else None


def _release(handle: int) -> None:
    """Release explicitly: a process forked meanwhile has the handle open, too."""
    if fcntl is not None:
        fcntl.flock(handle, fcntl.LOCK_UN)
    os.close(handle)


@dataclass(frozen=True)
class FilePair:
    """The places of a document and of its data.

    Attributes:
        document: the JSON file.
        stem: name of the data before `@`; it contains no `@` itself.
        end: suffix of the data.
    """

    document: Path
    stem: str
    end: str

    def data(self, sha256: str) -> Path:
        """Where data of this checksum are written.

        Examples:
            >>> FilePair(Path("joint/0f.json"), "0f", ".npz").data("0123456789abcdef" * 4).name
            '0f@0123456789abcdef.npz'
        """
        return self.document.with_name(f"{self.stem}@{sha256[:16]}{self.end}")

    def stored_data(self, sha256: str) -> Path:
        """Where data of this checksum are read: `<stem><end>` if only that exists."""
        data, plain = self.data(sha256), self.document.with_name(f"{self.stem}{self.end}")
        return plain if os.path.lexists(plain) and not os.path.lexists(data) else data

    def all_data(self) -> tuple[Path, ...]:
        """All files with data of the pair, sorted: the current, replaced and unfinished ones."""
        return self._files()[0]

    def _files(self) -> tuple[tuple[Path, ...], tuple[Path, ...]]:
        """Data and drafts of the pair, by one look at the folder, which may be large."""
        drafts = f".{self.document.name}.", f".{self.stem}@"
        try:
            with os.scandir(self.document.parent) as entries:
                names = sorted(e.name for e in entries if e.name.startswith((self.stem, *drafts)))
        except (FileNotFoundError, NotADirectoryError):
            names = []
        paths = [self.document.with_name(name) for name in names]
        data = tuple(path for path in paths if self._is_data(path.name))
        return data, tuple(p for p in paths if p.name.startswith(drafts) and _machine_of(p.name))

    def _is_data(self, name: str) -> bool:
        stem = name.removesuffix(self.end)
        return name.endswith(self.end) and (
            stem == self.stem or _CONTENT.fullmatch(stem[len(self.stem) :]) is not None
        )

    def replace(self, text: bytes, sha256: str = "", content: Iterable[bytes] = ()) -> None:
        """Write data, if any, and document; then delete the data that it does not name.

        Raises:
            OSError: if the system refuses; the old pair then stays.
        """
        make_folder(self.document.parent)
        with folder_lock(self.document.parent) as is_alone:
            if not sha256:
                write_file(self.document, [text])
                return
            data = self.data(sha256)
            is_new = not os.path.lexists(data)
            try:
                write_file(self.document, _after(data, content, text))
            except BaseException:
                if is_new and not self._holds(text):
                    with contextlib.suppress(OSError):
                        remove_file(data)
                raise
            if is_alone:
                self.remove_data(but=data)

    def _holds(self, text: bytes) -> bool:
        """Whether the document has this text, so that its data must stay."""
        try:
            return self.document.read_bytes() == text
        except OSError:
            return os.path.lexists(self.document)

    def remove_data(self, but: Path | None = None) -> None:
        """Delete data that no document names, and drafts of the pair, under the folder's lock.

        What cannot be deleted now is left, as are data that another machine may name soon.
        """
        data, drafts = self._files()
        if any(_machine_of(draft.name) != machine() for draft in drafts):
            return
        for path in (*drafts, *data):
            if path != but:
                with contextlib.suppress(OSError):
                    remove_file(path)

    def set_aside(self, folder: Path, name: str) -> None:
        """Move the pair into another folder as `<name>.<number>`, without overwriting.

        The data go first: data without a document would be taken for unfinished ones.

        Raises:
            OSError: if the system refuses.
        """
        with folder_lock(self.document.parent):
            make_folder(folder)
            number = 0
            while FilePair(folder / f"{name}.{number}.json", f"{name}.{number}", self.end).exists():
                number += 1
            for path in self.all_data():
                ending = path.name.removeprefix(self.stem)
                move_file(path, folder / f"{name}.{number}{ending}")
            move_file(self.document, folder / f"{name}.{number}.json")

    def exists(self) -> bool:
        """Whether the document or any data exist, damaged or not."""
        return os.path.lexists(self.document) or bool(self.all_data())

    def remove(self) -> None:
        """Delete the pair, if it exists: the document first, without which data are no pair.

        Raises:
            OSError: if the system refuses.
        """
        with folder_lock(self.document.parent):
            for path in (self.document, *self.all_data()):
                remove_file(path)


def _after(data: Path, content: Iterable[bytes], text: bytes) -> Iterator[bytes]:
    """A document's text, once its data are written: its open draft tells other machines of them."""
    write_file(data, content)
    yield text


def is_named_by_content(path: Path) -> bool:
    """Whether attlas named a file by its content: its stem ends in `@` and 16 digits.

    Examples:
        >>> is_named_by_content(Path("a@0123456789abcdef.npz")), is_named_by_content(Path("a.npz"))
        (True, False)
    """
    return _CONTENT.fullmatch(path.stem[-17:]) is not None


def pair_stem(path: Path) -> str:
    """The stem of a pair, from its document or a file with its data.

    Examples:
        >>> pair_stem(Path("a.b.json")), pair_stem(Path("a.b@0123456789abcdef.npz"))
        ('a.b', 'a.b')
    """
    return path.stem.rpartition("@")[0] if is_named_by_content(path) else path.stem


def tidy(folder: Path, end: str, checksum_of: Callable[[FilePair], str | None]) -> None:
    """Delete what processes that died have left in a folder: drafts, and data without a document.

    Nothing is deleted where the folder cannot be locked.

    Args:
        end: suffix of the data.
        checksum_of: gives the checksum that the document of a pair names; None if there is none,
            or it is damaged, so that all its data stay.

    Raises:
        OSError: if the system refuses.
    """
    with folder_lock(folder) as is_alone:
        if not is_alone:
            return
        for draft in folder.glob(f".*{DRAFT}"):
            if _machine_of(draft.name) == machine():
                remove_file(draft)
        paths = list(folder.glob(f"*{end}"))
        counts = Counter(map(pair_stem, paths))
        for stem in {pair_stem(path) for path in paths if is_named_by_content(path)}:
            pair = FilePair(folder / f"{stem}.json", stem, end)
            if not os.path.lexists(pair.document):
                pair.remove_data(but=folder / f"{stem}{end}")  # that may be a file of the user's
            elif counts[stem] > 1 and (sha256 := checksum_of(pair)) is not None:
                pair.remove_data(but=pair.stored_data(sha256))


def _machine_of(draft: str) -> str:
    """The machine that a draft names; none in drafts of earlier versions, which block nobody."""
    return match[1] if (match := _DRAFT.search(draft)) else ""

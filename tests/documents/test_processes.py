"""The processes that read documents: started when needed, used again, replaced, and never left behind."""

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.documents.samples import HELLO, SHEET_WORDS, WORDS, busy_seconds, children, sample, zipped
from tests.waiting import wait_until
from unlost.documents import DocumentKind, DocumentLimits, DocumentReader
from unlost.errors import DocumentError, UsageError

ENDLESS = b"%!PS\n{} loop"


def reading_processes(before: set[int]) -> set[int]:
    """Return the processes that were started since."""
    return children(os.getpid()) - before


def has_ended(process: int, seconds: int) -> bool:
    """Return whether a process, given by its file, ends within some seconds."""
    watched = select.poll()  # `select` takes no number above 1023, and many tests have run before
    watched.register(process, select.POLLIN)
    return bool(watched.poll(seconds * 1000))


@pytest.fixture
def before() -> set[int]:
    """Give the processes that are there before the test."""
    return children(os.getpid())


def test_processes_are_started_when_needed_used_again_and_ended(before: set[int]) -> None:
    """Nothing runs before the first document and after the last; two in a row are read by the same process."""
    with DocumentReader() as documents:
        assert reading_processes(before) == set()
        documents.extract_text(HELLO, DocumentKind.RTF)
        first = reading_processes(before)
        assert len(first) == 1
        documents.extract_text(sample(DocumentKind.XLS), DocumentKind.XLS)
        assert reading_processes(before) == first
    assert reading_processes(before) == set()


def test_a_document_that_is_just_written_ends_nobody(before: set[int]) -> None:
    """The system's word about a long document may come after it was read: no process takes it for the end."""
    body = rb"{\rtf1 word}" + b" " * 60_000
    with DocumentReader(processes=1) as documents:
        assert {documents.extract_text(body, DocumentKind.RTF).text for _ in range(500)} == {"word"}
        assert len(reading_processes(before)) == 1


def test_whoever_has_a_thousand_files_open_can_read_documents() -> None:
    """The line to a process may have any number."""
    with ExitStack() as opened, DocumentReader(processes=1) as documents:
        for _ in range(1100):
            opened.enter_context(open(os.devnull, "rb"))  # noqa: PTH123  nothing is read
        assert documents.extract_text(HELLO, DocumentKind.RTF).text == "Hello"


def test_several_threads_share_the_processes(before: set[int]) -> None:
    """Many threads get each its own text, by as many processes as were asked for and no more."""
    most = 0
    with DocumentReader(processes=2) as documents, ThreadPoolExecutor(8) as pool:

        def words(kind: DocumentKind) -> str:
            nonlocal most
            text = documents.extract_text(sample(kind), kind).text
            most = max(most, len(reading_processes(before)))
            return text

        kinds = [*WORDS] * 5
        assert list(pool.map(words, kinds)) == [WORDS[kind] for kind in kinds]
    assert most == 2
    assert reading_processes(before) == set()


def test_a_process_that_is_killed_at_work_is_replaced(before: set[int]) -> None:
    """Its document has an error, the next one is read."""
    with DocumentReader(processes=1) as documents, ThreadPoolExecutor(1) as pool:
        future = pool.submit(documents.extract_text, ENDLESS, DocumentKind.POSTSCRIPT)
        wait_until(lambda: any(children(pid) for pid in reading_processes(before)))
        (pid,) = reading_processes(before)
        os.kill(pid, signal.SIGSEGV)
        with pytest.raises(DocumentError, match="SIGSEGV") as caught:
            future.result()
        assert caught.value.kind == "damaged"
        assert documents.extract_text(HELLO, DocumentKind.RTF).text == "Hello"
        assert pid not in reading_processes(before)


def test_a_process_that_is_killed_while_it_waits_costs_nothing(before: set[int]) -> None:
    """The next document is read by another one."""
    with DocumentReader(processes=1) as documents:
        documents.extract_text(HELLO, DocumentKind.RTF)
        (pid,) = reading_processes(before)
        ending = os.pidfd_open(pid)
        os.kill(pid, signal.SIGKILL)
        assert has_ended(ending, 10)
        os.close(ending)
        assert documents.extract_text(sample(DocumentKind.ODS), DocumentKind.ODS).text == SHEET_WORDS


def test_a_process_that_stands_still_is_given_up(before: set[int]) -> None:
    """A stopped process cannot end itself: whoever waits ends it."""
    with DocumentReader(processes=1, limits=DocumentLimits(seconds=3)) as documents:
        documents.extract_text(HELLO, DocumentKind.RTF)
        (pid,) = reading_processes(before)
        os.kill(pid, signal.SIGSTOP)
        begun = time.monotonic()
        with pytest.raises(DocumentError) as caught:
            documents.extract_text(HELLO, DocumentKind.RTF)
        assert caught.value.kind == "too-long"
        assert time.monotonic() - begun < 8
        assert documents.extract_text(HELLO, DocumentKind.RTF).text == "Hello"
        assert pid not in reading_processes(before)


def test_closing_ends_what_is_being_read(before: set[int]) -> None:
    """Whoever still waits gets an error, Ghostscript ends as well, and afterwards nothing is read any more."""
    with ThreadPoolExecutor(1) as pool:
        with DocumentReader(processes=1) as documents:
            future = pool.submit(documents.extract_text, ENDLESS, DocumentKind.POSTSCRIPT)
            wait_until(lambda: any(children(pid) for pid in reading_processes(before)))
            (ghostscript,) = children(*reading_processes(before))
            ending = os.pidfd_open(ghostscript)
        with pytest.raises(DocumentError):
            future.result()
        assert has_ended(ending, 5)
        os.close(ending)
    with pytest.raises(UsageError):
        documents.extract_text(HELLO, DocumentKind.RTF)
    assert reading_processes(before) == set()


def test_without_ghostscript_the_message_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """PostScript has an error of its own where the program is missing; other documents are read."""
    monkeypatch.setenv("PATH", str(tmp_path))
    with DocumentReader() as documents:
        with pytest.raises(DocumentError, match="apt-get install ghostscript") as caught:
            documents.extract_text(b"%!PS\nshowpage", DocumentKind.POSTSCRIPT)
        assert caught.value.kind == "no-ghostscript"
        assert documents.extract_text(HELLO, DocumentKind.RTF).text == "Hello"


def test_no_modules_are_taken_from_where_one_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A file in the current folder that is called like a library is not run."""
    (tmp_path / "olefile.py").write_text("raise SystemExit")
    (tmp_path / "unlost.py").write_text("raise SystemExit")
    monkeypatch.chdir(tmp_path)
    with DocumentReader() as documents:
        assert documents.extract_text(sample(DocumentKind.DOC), DocumentKind.DOC).text == WORDS[DocumentKind.DOC]


def test_libraries_are_imported_by_those_processes_only() -> None:
    """Whoever asks does not pay for what reads documents."""
    code = "import sys, unlost.documents; print({'pypdfium2', 'olefile', 'python_calamine'} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], check=True, capture_output=True).stdout == b"set()\n"


def test_errors_go_from_process_to_process() -> None:
    """An error can be pickled, with its kind."""
    import pickle

    error = pickle.loads(pickle.dumps(DocumentError("locked", "encrypted")))  # noqa: S301  it is our own
    assert (str(error), error.kind) == ("locked", "encrypted")


PARENT = """
import sys
from unlost.documents import DocumentKind, DocumentReader
with DocumentReader() as documents:
    documents.extract_text(rb"{\\rtf1 Hello}", DocumentKind.RTF)
    print("ready", flush=True)
    if sys.argv[1] != "idle":
        documents.extract_text(open(sys.argv[2], "rb").read(), DocumentKind(sys.argv[1]))
    sys.stdin.read()
"""

# Expat takes seconds for a name of this length, in calls that Python cannot interrupt.
LONG_NAME = b"<" + b"a" * (60 << 20)
BUSY: dict[str, Callable[[], bytes]] = {
    "idle": lambda: b"",
    "postscript": lambda: ENDLESS,
    "docx": lambda: zipped({"word/document.xml": LONG_NAME}),
}


@pytest.mark.parametrize("kind", BUSY)
def test_a_killed_parent_leaves_no_process(kind: str, tmp_path: Path) -> None:
    """However busy they are, processes end with the one that started them, and Ghostscript with them."""
    (tmp_path / "body").write_bytes(BUSY[kind]())
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, kind, str(tmp_path / "body")], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    with parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == b"ready\n"
        (child,) = children(parent.pid)
        if kind == "postscript":
            wait_until(lambda: bool(children(child)))
        elif kind == "docx":
            begun = busy_seconds(child)
            wait_until(lambda: busy_seconds(child) > begun + 1)
        endings = [os.pidfd_open(pid) for pid in {child, *children(child)}]
        parent.kill()
        for ending in endings:
            assert has_ended(ending, 5)
            os.close(ending)

"""Reader processes are started on demand, reused, replaced and never orphaned."""

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

from tests.documents.samples import HELLO, SHEET_WORDS, WORDS, child_processes, cpu_seconds, make_zip, sample
from tests.waiting import wait_until
from unlost.documents import DocumentKind, DocumentLimits, DocumentReader
from unlost.errors import DocumentError, UsageError

ENDLESS_POSTSCRIPT = b"%!PS\n{} loop"


def reader_processes(before: set[int]) -> set[int]:
    """Return the processes started since `before`."""
    return child_processes(os.getpid()) - before


def has_ended(process: int, seconds: int) -> bool:
    """Return whether a process, given by its pidfd, ends within some seconds."""
    poller = select.poll()  # `select` accepts no descriptor above 1023
    poller.register(process, select.POLLIN)
    return bool(poller.poll(seconds * 1000))


@pytest.fixture
def before() -> set[int]:
    """Return the processes that exist before the test."""
    return child_processes(os.getpid())


def test_reader_process_is_started_on_demand_and_reused(before: set[int]) -> None:
    """No process runs before the first document or after closing."""
    with DocumentReader() as documents:
        assert reader_processes(before) == set()
        documents.extract_text(HELLO, DocumentKind.RTF)
        first = reader_processes(before)
        assert len(first) == 1
        documents.extract_text(sample(DocumentKind.XLS), DocumentKind.XLS)
        assert reader_processes(before) == first
    assert reader_processes(before) == set()


def test_document_of_pipe_capacity_does_not_end_process(before: set[int]) -> None:
    """A delayed poll event of a written document is not mistaken for the end of the process."""
    body = rb"{\rtf1 word}" + b" " * 60_000
    with DocumentReader(processes=1) as documents:
        assert {documents.extract_text(body, DocumentKind.RTF).text for _ in range(500)} == {"word"}
        assert len(reader_processes(before)) == 1


def test_documents_are_read_with_high_descriptor_numbers() -> None:
    """More than 1,024 files are open."""
    with ExitStack() as opened, DocumentReader(processes=1) as documents:
        for _ in range(1100):
            opened.enter_context(open(os.devnull, "rb"))  # noqa: PTH123  only the descriptor is used
        assert documents.extract_text(HELLO, DocumentKind.RTF).text == "Hello"


def test_threads_share_limited_number_of_processes(before: set[int]) -> None:
    """Each thread gets the text of its document."""
    maximum = 0
    with DocumentReader(processes=2) as documents, ThreadPoolExecutor(8) as pool:

        def words(kind: DocumentKind) -> str:
            nonlocal maximum
            text = documents.extract_text(sample(kind), kind).text
            maximum = max(maximum, len(reader_processes(before)))
            return text

        kinds = [*WORDS] * 5
        assert list(pool.map(words, kinds)) == [WORDS[kind] for kind in kinds]
    assert maximum == 2
    assert reader_processes(before) == set()


def test_process_killed_while_reading_is_replaced(before: set[int]) -> None:
    """The document raises an error, and the next one is read."""
    with DocumentReader(processes=1) as documents, ThreadPoolExecutor(1) as pool:
        future = pool.submit(documents.extract_text, ENDLESS_POSTSCRIPT, DocumentKind.POSTSCRIPT)
        wait_until(lambda: any(child_processes(pid) for pid in reader_processes(before)))
        (pid,) = reader_processes(before)
        os.kill(pid, signal.SIGSEGV)
        with pytest.raises(DocumentError, match="SIGSEGV") as caught:
            future.result()
        assert caught.value.kind == "damaged"
        assert documents.extract_text(HELLO, DocumentKind.RTF).text == "Hello"
        assert pid not in reader_processes(before)


def test_process_killed_while_idle_is_replaced(before: set[int]) -> None:
    """The next document is read without an error."""
    with DocumentReader(processes=1) as documents:
        documents.extract_text(HELLO, DocumentKind.RTF)
        (pid,) = reader_processes(before)
        pidfd = os.pidfd_open(pid)
        os.kill(pid, signal.SIGKILL)
        assert has_ended(pidfd, 10)
        os.close(pidfd)
        assert documents.extract_text(sample(DocumentKind.ODS), DocumentKind.ODS).text == SHEET_WORDS


def test_stopped_process_is_killed_after_timeout(before: set[int]) -> None:
    """A stopped process cannot enforce its own time limit."""
    with DocumentReader(processes=1, limits=DocumentLimits(seconds=3)) as documents:
        documents.extract_text(HELLO, DocumentKind.RTF)
        (pid,) = reader_processes(before)
        os.kill(pid, signal.SIGSTOP)
        started = time.monotonic()
        with pytest.raises(DocumentError) as caught:
            documents.extract_text(HELLO, DocumentKind.RTF)
        assert caught.value.kind == "too-long"
        assert time.monotonic() - started < 8
        assert documents.extract_text(HELLO, DocumentKind.RTF).text == "Hello"
        assert pid not in reader_processes(before)


def test_close_ends_running_extraction(before: set[int]) -> None:
    """The waiting thread gets an error, Ghostscript ends, and later calls are rejected."""
    with ThreadPoolExecutor(1) as pool:
        with DocumentReader(processes=1) as documents:
            future = pool.submit(documents.extract_text, ENDLESS_POSTSCRIPT, DocumentKind.POSTSCRIPT)
            wait_until(lambda: any(child_processes(pid) for pid in reader_processes(before)))
            (ghostscript,) = child_processes(*reader_processes(before))
            pidfd = os.pidfd_open(ghostscript)
        with pytest.raises(DocumentError):
            future.result()
        assert has_ended(pidfd, 5)
        os.close(pidfd)
    with pytest.raises(UsageError):
        documents.extract_text(HELLO, DocumentKind.RTF)
    assert reader_processes(before) == set()


def test_missing_ghostscript_error_suggests_installation(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Other documents are read without Ghostscript."""
    monkeypatch.setenv("PATH", str(tmp_path))
    with DocumentReader() as documents:
        with pytest.raises(DocumentError, match="apt-get install ghostscript") as caught:
            documents.extract_text(b"%!PS\nshowpage", DocumentKind.POSTSCRIPT)
        assert caught.value.kind == "no-ghostscript"
        assert documents.extract_text(HELLO, DocumentKind.RTF).text == "Hello"


def test_reader_does_not_import_from_current_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A file named like a library is not executed."""
    (tmp_path / "olefile.py").write_text("raise SystemExit")
    (tmp_path / "unlost.py").write_text("raise SystemExit")
    monkeypatch.chdir(tmp_path)
    with DocumentReader() as documents:
        assert documents.extract_text(sample(DocumentKind.DOC), DocumentKind.DOC).text == WORDS[DocumentKind.DOC]


def test_document_libraries_are_not_imported_by_caller() -> None:
    """Only the reader processes import them."""
    code = "import sys, unlost.documents; print({'pypdfium2', 'olefile', 'python_calamine'} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], check=True, capture_output=True).stdout == b"set()\n"


def test_document_error_can_be_pickled() -> None:
    """The kind is preserved."""
    import pickle

    error = pickle.loads(pickle.dumps(DocumentError("locked", "encrypted")))  # noqa: S301  trusted data
    assert (str(error), error.kind) == ("locked", "encrypted")


PARENT_SCRIPT = """
import sys
from unlost.documents import DocumentKind, DocumentReader
with DocumentReader() as documents:
    documents.extract_text(rb"{\\rtf1 Hello}", DocumentKind.RTF)
    print("ready", flush=True)
    if sys.argv[1] != "idle":
        documents.extract_text(open(sys.argv[2], "rb").read(), DocumentKind(sys.argv[1]))
    sys.stdin.read()
"""

# Expat needs seconds for a name of this length, in calls that Python cannot interrupt.
LONG_NAME = b"<" + b"a" * (60 << 20)
BUSY_DOCUMENTS: dict[str, Callable[[], bytes]] = {
    "idle": lambda: b"",
    "postscript": lambda: ENDLESS_POSTSCRIPT,
    "docx": lambda: make_zip({"word/document.xml": LONG_NAME}),
}


@pytest.mark.parametrize("kind", BUSY_DOCUMENTS)
def test_killed_parent_leaves_no_processes(kind: str, tmp_path: Path) -> None:
    """Busy reader processes and Ghostscript end with their parent."""
    (tmp_path / "body").write_bytes(BUSY_DOCUMENTS[kind]())
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT_SCRIPT, kind, str(tmp_path / "body")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    with parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == b"ready\n"
        (child,) = child_processes(parent.pid)
        if kind == "postscript":
            wait_until(lambda: bool(child_processes(child)))
        elif kind == "docx":
            started = cpu_seconds(child)
            wait_until(lambda: cpu_seconds(child) > started + 1)
        pidfds = [os.pidfd_open(pid) for pid in {child, *child_processes(child)}]
        parent.kill()
        for pidfd in pidfds:
            assert has_ended(pidfd, 5)
            os.close(pidfd)

"""Runs a child under ``ptrace`` and kills it just before its n-th call that changes a file.

Named points are those that somebody thought of. Between two of them a run makes dozens of calls
to the system (open, write, sync, link, rename, delete), each of which may be the last one of its
process: this kills it at each. A seccomp filter lets all other calls run at full speed. Linux on
x86-64 and ARM; elsewhere, and where tracing is forbidden, the tests that use it are skipped.
"""

from __future__ import annotations

import ctypes
import os
import platform
import re
import signal
import struct
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

_NUMBERS = {
    "x86_64": """
        write 1 pwrite64 18 writev 20 pwritev 296 sendfile 40 copy_file_range 326 ftruncate 77
        fallocate 285 fsync 74 fdatasync 75 flock 73 open 2 creat 85 openat 257 rename 82
        renameat 264 renameat2 316 link 86 linkat 265 symlink 88 unlink 87 unlinkat 263 rmdir 84
        mkdir 83 mkdirat 258 truncate 76""",
    "aarch64": """
        write 64 pwrite64 68 writev 66 pwritev 70 sendfile 71 copy_file_range 285 ftruncate 46
        fallocate 47 fsync 82 fdatasync 83 flock 32 openat 56 renameat 38 renameat2 276 linkat 37
        symlinkat 36 unlinkat 35 mkdirat 34 truncate 45""",
}
CALLS: dict[str, dict[str, int]] = {
    machine: dict(zip(text.split()[::2], map(int, text.split()[1::2]), strict=True))
    for machine, text in _NUMBERS.items()
}
"""Machine → the calls that change files → their numbers."""
_AT = {"openat", "renameat", "renameat2", "linkat", "unlinkat", "mkdirat", "symlinkat"}
_OPEN = {"open", "creat", "openat"}
_BY_PATH = {"open", "creat", "rename", "link", "symlink", "unlink", "rmdir", "mkdir", "truncate"}
_TARGET = {"rename": 1, "link": 1, "symlink": 1, "renameat": 3, "renameat2": 3, "linkat": 3}
_CHANGING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC

_TRACEME, _CONT, _SETOPTIONS, _INFO = 0, 7, 0x4200, 0x420E
_OPTIONS = 0x2 | 0x4 | 0x8 | 0x80 | 0x100000  # forks, vforks, threads, seccomp, kill with tracer
_SECCOMP_STOP = 7
_libc = ctypes.CDLL(None, use_errno=True)
_libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
_libc.ptrace.restype = ctypes.c_long


def available() -> str | None:
    """Return why nothing can be traced here, None if it can."""
    if sys.platform != "linux" or platform.machine() not in CALLS:
        return f"tracing is written for Linux on {' and '.join(CALLS)}"
    try:
        trace(lambda: os._exit(0), "/nowhere", None)
    except OSError as error:
        return f"tracing is not allowed here: {error}"
    return None


def trace(child: Callable[[], None], folder: str, kill_at: int | None) -> dict:
    """Run a child and watch what it does to the files below a folder.

    Args:
        child: Runs in a forked process and never returns.
        folder: Absolute; calls on other files are let through and not counted.
        kill_at: Kill the child before this call, from 0; None lets it live.

    Returns:
        ``status`` as ``subprocess`` has it, and ``calls``, each as text.

    Raises:
        OSError: The system does not allow it.
    """
    numbers = CALLS[platform.machine()]
    pid = os.fork()
    if pid == 0:
        _traced(child, numbers.values())
    _, status = os.waitpid(pid, 0)
    if not os.WIFSTOPPED(status):
        raise OSError(f"ptrace or seccomp refused ({status})")
    _ptrace(_SETOPTIONS, pid, _OPTIONS)
    _ptrace(_CONT, pid, 0)
    return _watched(pid, folder, kill_at, {number: name for name, number in numbers.items()})


def _traced(child: Callable[[], None], numbers: object) -> None:
    """Ask to be traced, and run."""
    try:
        _ptrace(_TRACEME, 0, 0)
        _filter(list(numbers))
        os.kill(os.getpid(), signal.SIGSTOP)
    except OSError:
        os._exit(71)
    child()


def _filter(numbers: list[int]) -> None:
    """Stop at these calls alone."""
    load, jump, give = 0x20, 0x15, 0x06
    trace_it, allow = 0x7FF00000, 0x7FFF0000
    program = [struct.pack("HBBI", load, 0, 0, 0)]
    for index, number in enumerate(numbers):
        program.append(struct.pack("HBBI", jump, len(numbers) - index, 0, number))
    program += [struct.pack("HBBI", give, 0, 0, allow), struct.pack("HBBI", give, 0, 0, trace_it)]
    code = ctypes.create_string_buffer(b"".join(program))
    header = ctypes.create_string_buffer(
        struct.pack("HxxxxxxQ", len(program), ctypes.addressof(code))
    )
    if _libc.prctl(38, 1, 0, 0, 0) or _libc.prctl(22, 2, ctypes.byref(header), 0, 0):
        raise OSError(ctypes.get_errno(), "seccomp")


def _ptrace(request: int, pid: int, data: int) -> None:
    if _libc.ptrace(request, pid, None, data) == -1:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def _watched(pid: int, folder: str, kill_at: int | None, names: dict[int, str]) -> dict:
    calls: list[str] = []
    while True:
        found, status = os.waitpid(-1, 0x40000000)
        if os.WIFEXITED(status) or os.WIFSIGNALED(status):
            if found == pid:
                return {"status": os.waitstatus_to_exitcode(status), "calls": calls}
            continue
        deliver = 0
        if status >> 8 == signal.SIGTRAP | _SECCOMP_STOP << 8:
            call = _call(found, folder, names)
            if call is not None:
                calls.append(call)
                if len(calls) - 1 == kill_at:
                    os.kill(pid, signal.SIGKILL)
                    continue
        elif status >> 16 == 0 and os.WSTOPSIG(status) not in (signal.SIGSTOP, signal.SIGTRAP):
            deliver = os.WSTOPSIG(status)
        with suppress(OSError):  # killed meanwhile
            _ptrace(_CONT, found, deliver)


def _call(thread: int, folder: str, names: dict[int, str]) -> str | None:
    """Return the call that a thread is about to make, None if it is none of those."""
    block = ctypes.create_string_buffer(96)
    if _libc.ptrace(_INFO, thread, ctypes.c_void_p(96), block) < 0:
        return None
    number, *arguments = struct.unpack_from("7Q", block.raw, 24)
    name = names.get(number)
    if name is None:
        return None
    if name in _OPEN:
        flags = {"open": 1, "openat": 2}.get(name)
        if flags is not None and not arguments[flags] & _CHANGING:
            return None
    place = _place(thread, name, arguments)
    target = _TARGET.get(name)
    if not place.startswith(f"{folder}/"):
        return None
    told = f"{name} {_masked(place.removeprefix(f'{folder}/'))}"
    if target is None:
        return told
    new = _text(thread, arguments[target])
    return f"{told} -> {_masked(new.removeprefix(f'{folder}/'))}"


def _place(thread: int, name: str, arguments: list[int]) -> str:
    with suppress(OSError):
        if name in _BY_PATH:
            return _text(thread, arguments[0])
        if name in _AT:
            return _below(thread, arguments[0], _text(thread, arguments[1]))
        return str(Path(f"/proc/{thread}/fd/{arguments[0]}").readlink())
    return ""


def _below(thread: int, descriptor: int, path: str) -> str:
    """Return a path, absolute if it is relative to an open folder."""
    if path.startswith("/") or descriptor & 0xFFFFFFFF == 0xFFFFFF9C:
        return path
    return f"{Path(f'/proc/{thread}/fd/{descriptor & 0xFFFFFFFF}').readlink()}/{path}"


def _text(thread: int, address: int) -> str:
    with Path(f"/proc/{thread}/mem").open("rb", buffering=0) as memory:
        memory.seek(address)
        return memory.read(1024).split(b"\0", 1)[0].decode(errors="replace")


def _masked(path: str) -> str:
    """Return a path without what is random in it."""
    return re.sub(r"[0-9a-f]{8}(-?[0-9a-f]{4,})*", "*", path)

"""Compile functions by numba, with a cache on disk that may be missing, full or damaged.

Numba's own cache fails on import or call in these cases. Here an entry is one file, named by a
hash of all it depends on, with a checksum: an unreadable one is compiled again. The folder is
that of numba (``NUMBA_CACHE_DIR``, ``__pycache__`` or the user's cache folder). Entries hold
code, so folders that others can write, such as the temporary one, are never used.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import hashlib
import os
import pickle
import threading
import time
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TextIO

import llvmlite
import numba
import numpy as np
from numba import _dynfunc
from numba.core import caching, config
from numba.core.caching import CompileResultCacheImpl, _Cache
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.serialize import dumps
from numba.extending import register_jitable

from tinykernel.base.files import replace_file
from tinykernel.base.progress import report_anywhere

try:
    import fcntl
except ImportError:  # Windows: processes at once compile the same
    fcntl = None  # type: ignore[assignment]

#: Progress stage while functions are compiled.
STAGE = "compiling, once for this computer"
# Seconds to wait for another process that compiles the same; one that dies lets go at once.
_LONGEST_WAIT = 600.0


class _Clock:
    """Seconds in which at least one function was compiled."""

    def __init__(self) -> None:
        self._lock, self._running, self._since, self.seconds = threading.Lock(), 0, 0.0, 0.0

    def start(self) -> None:
        with self._lock:
            if not self._running:
                self._since = time.perf_counter()
            self._running += 1

    def stop(self) -> None:
        with self._lock:
            self._running = max(0, self._running - 1)
            if not self._running:
                self.seconds += time.perf_counter() - self._since


_CLOCK = _Clock()


def seconds_compiling() -> float:
    """Return the seconds this process has spent compiling; estimates of time leave them out."""
    return _CLOCK.seconds


# What is called before the next function is compiled.
_CALLS: list[Callable[[], None]] = []


@contextlib.contextmanager
def calling_once_compiling(function: Callable[[], None]) -> Iterator[None]:
    """Call a function before the first one is compiled that no cache has, if any is."""
    _CALLS.append(function)
    try:
        yield
    finally:
        if function in _CALLS:
            _CALLS.remove(function)


class _CollectorRest:
    """Keeps the garbage collector off while functions are compiled, in any thread.

    The compiler makes millions of objects that live on; looking through them again and again
    took a fifth of its time.
    """

    def __init__(self) -> None:
        self._lock, self._inside, self._was_on = threading.Lock(), 0, False

    def __enter__(self) -> None:
        with self._lock:
            if not self._inside:
                self._was_on = gc.isenabled()
                gc.disable()
            self._inside += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._inside -= 1
            if not self._inside and self._was_on:
                gc.enable()


_COLLECTOR_REST = _CollectorRest()


def _compile_at_rest(dispatcher: Any, compile_types: Callable[[Any], Any], types: Any) -> Any:
    """Compile for types of arguments, or load from the cache, without the collector."""
    with _COLLECTOR_REST:
        try:
            return compile_types(types)
        except BaseException:
            if isinstance(dispatcher._cache, _CheckedCache):
                dispatcher._cache.give_up()
            raise


def njit(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Compile a function as `numba.njit` does, with the cache of this module."""

    def compile_lazily(function: Callable[..., Any]) -> Any:
        # Nobody passes these functions as arguments; the wrapper for that took 16 % of the time.
        dispatcher = numba.njit(no_cfunc_wrapper=True, **options)(function)
        if dispatcher is function:  # as NUMBA_DISABLE_JIT asks
            return function
        with contextlib.suppress(RuntimeError, OSError):  # no folder, as for a doctest
            dispatcher._cache = _CheckedCache(function, options)
        dispatcher.compile = functools.partial(_compile_at_rest, dispatcher, dispatcher.compile)
        return dispatcher

    return compile_lazily


class _PartLibrary(JITCodeLibrary):  # type: ignore[misc]
    """Code that becomes optimised and machine code only in the functions that call it."""

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalized = True


class _PartCompiler(CompilerBase):  # type: ignore[misc]
    """Compiles up to the code that is linked to others."""

    def define_pipelines(self) -> list[Any]:
        state = self.state
        state.library = _PartLibrary(state.targetctx.codegen(), state.func_id.func_qualname)
        state.targetctx.get_executable = _without_machine_code
        return [DefaultPassBuilder.define_nopython_pipeline(state)]


def _without_machine_code(library: Any, description: Any, environment: Any) -> Any:
    """Return what numba knows a compiled function by; it is never called."""
    library._ensure_finalized()
    module, name = description.lookup_module(), description.qualname
    return _dynfunc.make_function(module, name, "", 0, environment, (library,))


def part(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Compile a function within the compiled ones that call it; Python runs its source."""

    def register(function: Any) -> Any:
        function.py_func = function  # as numba has it, see `_sources`
        hidden = {"no_cfunc_wrapper": True, "pipeline_class": _PartCompiler}
        return register_jitable(error_model="numpy", **hidden, **options)(function)

    return register


#: Compiles a `part` that is copied to where it is called.
inlined = part(forceinline=True)


@functools.cache
def _digest(file: str, changed: int, size: int) -> str:
    return hashlib.sha256(Path(file).read_bytes()).hexdigest()


def _sources(function: Callable[..., Any]) -> tuple[list[str], list[tuple[str, str]]]:
    """Return all that is compiled into one function: digests of files, and named numbers.

    Files that were unpacked may have the time of those of another version, and their size.
    """
    files, numbers = set[str](), set[tuple[str, str]]()
    functions, queue = {function}, [function]
    while queue:
        function = queue.pop()
        files.add(function.__code__.co_filename)
        for name in function.__code__.co_names:
            value = function.__globals__.get(name)
            if isinstance(value, int | float | np.generic):
                numbers.add((name, repr(value)))
            elif isinstance(value, types.ModuleType):
                if value.__name__.startswith("tinykernel."):
                    files.add(str(value.__file__))
            elif (inner := getattr(value, "py_func", None)) is not None and inner not in functions:
                functions.add(inner)
                queue.append(inner)
    stats = ((file, os.stat(file)) for file in sorted(files))
    digests = [_digest(file, stat.st_mtime_ns, stat.st_size) for file, stat in stats]
    return digests, sorted(numbers)


class _Implementation(CompileResultCacheImpl):  # type: ignore[misc]
    """Looks for a folder where numba does; a user without a home has no cache folder."""

    _locator_classes = (
        caching.UserProvidedCacheLocator,
        caching.InTreeCacheLocator,
        *([caching.UserWideCacheLocator] if os.path.isabs(os.path.expanduser("~")) else []),
    )


class _CheckedCache(_Cache):  # type: ignore[misc]
    """The compiled forms of one function, a file for each combination of types."""

    def __init__(self, function: Callable[..., Any], options: dict[str, Any]) -> None:
        self._impl = _Implementation(function)
        self._function, self._options = function, repr(sorted(options.items()))
        self._enabled = True
        self._locks: dict[Path, TextIO | None] = {}  # of what is compiled now

    @functools.cached_property
    def _about(self) -> tuple[Any, ...]:
        """All that the code depends on, except types and processor."""
        versions = (numba.__version__, llvmlite.__version__)
        code = (self._function.__code__.co_code, self._options, _sources(self._function))
        return (*versions, config.OPT, config.BOUNDSCHECK, *code)

    @property
    def cache_path(self) -> str:
        return str(self._impl.locator.get_cache_path())

    def enable(self) -> None:
        self._enabled = True

    def disable(self) -> None:
        self._enabled = False

    def flush(self) -> None:
        for file in self.entries():
            file.unlink(missing_ok=True)

    def entries(self) -> Iterator[Path]:
        """Yield the files of this function."""
        return Path(self.cache_path).glob(f"{self._impl.filename_base}.*.tkc")

    def _file(self, signature: Any, codegen: Any) -> Path:
        key = repr((*self._about, signature, codegen.magic_tuple()))
        digest = hashlib.sha256(key.encode()).hexdigest()[:24]
        return Path(self.cache_path, f"{self._impl.filename_base}.{digest}.tkc")

    def load_overload(self, signature: Any, target_context: Any) -> Any:
        """Return the compiled function, or None if it is missing or damaged."""
        compiled = self._load(signature, target_context)
        if compiled is None:
            file = self._file(signature, target_context.codegen())
            self._locks[file] = None
            _CLOCK.start()
            report_anywhere(STAGE, 0)
            if self._enabled:
                while _CALLS:
                    _CALLS.pop()()
                self._wait_for_others(file)
                compiled = self._load(signature, target_context)
                if compiled is not None:
                    self._end(file)
        return compiled

    def _load(self, signature: Any, target_context: Any) -> Any:
        target_context.refresh()
        if not self._enabled:
            return None
        try:
            content = self._file(signature, target_context.codegen()).read_bytes()
            data = content[32:]
            if hashlib.sha256(data).digest() != content[:32]:
                return None
            return self._impl.rebuild(target_context, pickle.loads(data))
        except Exception:  # whatever is wrong with the cache, the source is there
            return None

    def _wait_for_others(self, file: Path) -> None:
        """Lock an entry, so that other processes wait for it and do not compile the same."""
        if fcntl is None:
            return
        with contextlib.suppress(OSError):
            self._impl.locator.ensure_cache_path()
            lock = open(file.with_suffix(".lock"), "w", encoding="ascii")  # noqa: SIM115 (held)
            self._locks[file] = lock
            end = time.monotonic() + _LONGEST_WAIT
            while time.monotonic() < end:
                try:
                    return fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    time.sleep(0.05)

    def _end(self, file: Path) -> None:
        """Stop the clock, and let others have the entry."""
        _CLOCK.stop()
        report_anywhere(STAGE, 1)
        lock = self._locks.pop(file, None)
        if lock is not None:
            with lock, contextlib.suppress(OSError):
                os.unlink(lock.name)

    def give_up(self) -> None:
        """Let others have what could not be compiled."""
        for file in list(self._locks):
            self._end(file)

    def save_overload(self, signature: Any, compiled: Any) -> None:
        """Store a compiled function, unless the disk is full or read-only."""
        file = self._file(signature, compiled.codegen)
        try:
            if self._enabled and self._impl.check_cachable(compiled):
                self._store(file, compiled)
        finally:
            self._end(file)

    def _store(self, file: Path, compiled: Any) -> None:
        data = dumps(self._impl.reduce(compiled))
        with contextlib.suppress(OSError):
            self._impl.locator.ensure_cache_path()
            replace_file(file, hashlib.sha256(data).digest() + data, 0o600)

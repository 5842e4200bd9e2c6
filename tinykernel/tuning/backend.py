"""Where trials run: in threads here, or on the workers of a Dask scheduler, through joblib."""

from collections.abc import Iterator
from contextlib import contextmanager

from joblib import parallel_config
from joblib.parallel import get_active_backend

from tinykernel.errors import ToolError

SECONDS = 10  # to wait for an answer of the scheduler


def is_remote() -> bool:
    """Return whether ``joblib.parallel_config`` names a backend that shares no memory."""
    backend, _ = get_active_backend(prefer="threads")
    return not getattr(backend, "supports_sharedmem", False)


@contextmanager
def scheduler(address: str | None) -> Iterator[None]:
    """Run the trials of `tune` at a Dask scheduler; without an address, in threads here."""
    if address is None:
        yield
        return
    try:
        from distributed import Client
    except ImportError:
        raise ToolError("backend: install Dask: pip install distributed") from None
    try:
        client = Client(address, timeout=SECONDS)  # type: ignore[no-untyped-call,unused-ignore]
    except (OSError, ValueError) as error:
        raise ToolError(
            f"backend {address}: no scheduler answers ({error}); give an address such as "
            "tcp://127.0.0.1:8786, and start 'dask scheduler' there"
        ) from None
    with client, parallel_config(backend="dask"):
        yield

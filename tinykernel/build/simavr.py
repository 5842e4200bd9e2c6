"""Running a program on an emulated AVR, by the library of simavr."""

import ctypes
import ctypes.util
import struct
import time
from pathlib import Path
from typing import Any

from elftools.elf.elffile import ELFFile

from tinykernel.errors import ToolError

# Registers of the ATmega that firmware/boards/avr/start.c uses: GPIOR0, GPIOR1, GPIOR2.
_TEXT, _DATA, _STATUS = 0x3E, 0x4A, 0x4B
_DONE, _CRASHED = 5, 6  # states of avr_run, see sim_avr.h
_FAULT = 77  # see firmware/boards/semihost.h
_STEPS = 256  # calls of avr_run between two looks at the clock
_SLICE = 100_000  # cycles that avr_run may take at a time
_READ = ctypes.CFUNCTYPE(ctypes.c_uint8, ctypes.c_void_p, ctypes.c_uint16, ctypes.c_void_p)
_WRITE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_uint16, ctypes.c_uint8, ctypes.c_void_p)
_LOGGER = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p)


@_LOGGER
def _quiet(_avr: Any, _level: int, _text: bytes, _arguments: Any) -> None:
    """Drop what the library would print."""


def _library() -> Any:
    library = ctypes.CDLL(ctypes.util.find_library("simavr"))
    library.avr_make_mcu_by_name.restype = ctypes.c_void_p
    library.avr_make_mcu_by_name.argtypes = [ctypes.c_char_p]
    library.avr_loadcode.argtypes = [ctypes.c_void_p, ctypes.c_char_p, *[ctypes.c_uint32] * 2]
    for name in ("avr_init", "avr_run", "avr_reset", "avr_terminate"):
        getattr(library, name).argtypes = [ctypes.c_void_p]
    for name in ("avr_register_io_read", "avr_register_io_write"):
        function = getattr(library, name)
        function.argtypes = [ctypes.c_void_p, ctypes.c_uint16, ctypes.c_void_p, ctypes.c_void_p]
    library.avr_global_logger_set.argtypes = [ctypes.c_void_p]
    library.avr_global_logger_set(_quiet)
    return library


class Simavr:
    """A program (ELF) in an emulated AVR, by simavr's name of the chip, and its files beside it."""

    def __init__(self, mcu: str, program: Path) -> None:
        self.library = _library()
        self.folder = program.parent
        self.text, self.status = bytearray(), -1
        self.input, self.at, self.output = b"", 0, bytearray()
        self.avr = self.library.avr_make_mcu_by_name(mcu.encode())
        if not self.avr:
            raise ToolError(f"simavr has no {mcu}")
        self.library.avr_init(self.avr)
        self.fields = self._find_fields()
        self.callbacks = [
            (_DATA, _READ(self._read)),
            (_STATUS, _READ(lambda *_: int(self.at < len(self.input)))),
            (_DATA, _WRITE(lambda _, __, value, ___: self.output.append(value))),
            (_STATUS, _WRITE(self._exit)),
            (_TEXT, _WRITE(lambda _, __, value, ___: self.text.append(value))),
        ]
        for address, callback in self.callbacks:
            kind = "read" if isinstance(callback, _READ) else "write"
            register = getattr(self.library, f"avr_register_io_{kind}")
            register(self.avr, address, ctypes.cast(callback, ctypes.c_void_p), None)
        with program.open("rb") as stream:
            for segment in ELFFile(stream).iter_segments():
                if segment["p_type"] == "PT_LOAD" and segment["p_filesz"]:
                    data = segment.data()
                    self.library.avr_loadcode(self.avr, data, len(data), segment["p_paddr"])

    def _find_fields(self) -> tuple[int, int]:
        """Find the program counter and the cycles in a structure whose layout is not public."""
        # They count by two and by one when the chip, whose flash is empty, does nothing.
        empty = bytes(64)
        self.library.avr_loadcode(self.avr, empty, len(empty), 0)
        seen = []
        for _ in range(8):
            seen.append(struct.unpack("<256I", ctypes.string_at(self.avr, 1024)))
            self.library.avr_run(self.avr)
        counted = {column: place for place, column in enumerate(zip(*seen, strict=True))}
        counter, cycles = counted.get(tuple(range(0, 16, 2))), counted.get(tuple(range(8)))
        if counter is None or cycles is None:
            raise ToolError("this version of simavr cannot be followed; install simavr 1.6")
        self.library.avr_reset(self.avr)
        return 4 * counter, 4 * cycles

    def _field(self, place: int) -> Any:
        return ctypes.c_uint32.from_address(self.avr + place)

    def run(self, timeout: float, addresses: list[int] | None = None) -> tuple[int, str]:
        """Run to the end; return status and text, and append the address of every instruction."""
        # Behind the cycles: how many are left and how many there may be before avr_run returns.
        left, most = (self._field(self.fields[1] + behind) for behind in (8, 16))
        if addresses is None and (left.value, most.value) == (1, 1):
            most.value = _SLICE
        source = self.folder / "in.bin"
        self.input = source.read_bytes() if source.exists() else b""
        limit = time.monotonic() + timeout
        step, avr, counter = self.library.avr_run, self.avr, self._field(self.fields[0])
        while self.status < 0:
            for _ in range(_STEPS):
                if addresses is not None:
                    addresses.append(counter.value)
                if step(avr) in (_DONE, _CRASHED) and self.status < 0:
                    self.status = _FAULT
                if self.status >= 0:
                    break
            if self.status < 0 and time.monotonic() > limit:
                raise ToolError(f"simavr: the program did not end within {timeout:.0f} seconds")
        (self.folder / "out.bin").write_bytes(self.output)
        return self.status, self.text.decode("ascii", "replace")

    def _read(self, _avr: Any, _address: int, _parameter: Any) -> int:
        self.at += 1
        return self.input[self.at - 1] if self.at <= len(self.input) else 0

    def _exit(self, _avr: Any, _address: int, value: int, _parameter: Any) -> None:
        self.status = value

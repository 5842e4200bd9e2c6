"""Just enough of four instruction sets to follow the stack and the calls of machine code.

A bound read from machine code holds for every compiler and for library routines without sources.
Each decoder returns an `Effect`; an instruction that it does not know can neither move the stack
pointer nor call. Encodings: Armv7-M Architecture Reference Manual (A5, A7), The RISC-V Instruction
Set Manual (chapters 2 and 16), Xtensa Instruction Set Architecture Reference Manual (chapter 7),
AVR Instruction Set Manual (chapter 5).
"""

from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Effect:
    """The effect of one instruction on the stack and the control flow."""

    size: int  # bytes of the instruction.
    grows: int = 0  # bytes by which the stack grows, 0 if it does not.
    call: int | None = None  # address of a callee, or of a branch.
    jump: int | None = None
    ends: bool = False  # whether the next instruction is reached only from elsewhere.
    problem: str = ""  # empty, or why no bound can be given.


@dataclass
class MachineState:
    """The memory of the program and the registers whose values are known constants.

    A decoder forgets a register that an instruction might write. It may forget too much: then a
    bound is refused, never wrong.
    """

    read: Callable[[int, int], bytes | None]
    known: dict[int, int] = field(default_factory=dict)
    popped: int = 0

    def forget(self, *registers: int) -> None:
        """Drop what was known of registers."""
        for register in registers:
            self.known.pop(register, None)

    def load(self, address: int, size: int = 4) -> int | None:
        """Read a little-endian number of the program's constant memory."""
        data = self.read(address, size)
        return None if data is None else int.from_bytes(data, "little")


INDIRECT_CALL = "it calls through a pointer"
COMPUTED_JUMP = "it jumps through a pointer"
VARIABLE_STACK = "its stack frame has a variable size"


def signed(value: int, bits: int) -> int:
    """Read the low `bits` bits of a number as two's complement."""
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def _gather(word: int, *fields: tuple[int, int, int]) -> int:
    """Put a number together; a field is its lowest bit in the word, its width, and its place."""
    return sum((word >> low & (1 << width) - 1) << place for low, width, place in fields)


def _move(size: int, change: int | None, sign: int = 1) -> Effect:
    """Return the effect of adding a word, if it is known, times `sign` to the stack pointer."""
    if change is None:
        return Effect(size, problem=VARIABLE_STACK)
    return Effect(size, grows=max(0, -sign * signed(change, 32)))


def _arm(machine: MachineState, at: int, half: int) -> Effect:
    if half >> 11 >= 0x1D:
        return _arm_wide(machine, at, half, machine.load(at + 2, 2) or 0)
    popped, machine.popped = machine.popped, 0
    register = half >> 3 & 15
    if half & 0xFE00 == 0xB400:
        return Effect(2, grows=4 * (half & 0x1FF).bit_count())
    if half & 0xFF80 == 0xB080:
        return Effect(2, grows=4 * (half & 0x7F))
    if half & 0xFF87 == 0x4485:
        return _move(2, machine.known.get(register))
    _arm_track(machine, at, half)
    if half & 0xFF87 == 0x4700:
        returns = register == 14 or popped >> register & 1
        return Effect(2, ends=True, problem="" if returns else COMPUTED_JUMP)
    elif half & 0xFF87 == 0x4780:
        return Effect(2, problem=INDIRECT_CALL)
    elif half & 0xFF87 == 0x4687 or half & 0xFF87 == 0x4685:
        wrong = COMPUTED_JUMP if half & 0xFF87 == 0x4687 else VARIABLE_STACK
        returns = half & 0xFF87 == 0x4687 and register == 14
        return Effect(2, ends=True, problem="" if returns else wrong)
    elif half & 0xF000 == 0xD000 and half >> 8 & 15 < 14:
        return Effect(2, jump=at + 4 + 2 * signed(half, 8))
    elif half & 0xF800 == 0xE000:
        return Effect(2, jump=at + 4 + 2 * signed(half, 11), ends=True)
    elif half & 0xFE00 == 0xBC00:
        machine.popped = half & 0xFF
        return Effect(2, ends=bool(half & 0x100))
    return Effect(2)


def _arm_track(machine: MachineState, at: int, half: int) -> None:
    """Follow the constants that ARMv6-M needs for stack frames of more than 508 bytes."""
    known, upper = machine.known, half >> 8 & 7
    lower, source = half & 7, half >> 3 & 7
    if half & 0xF800 == 0x4800:  # ldr from the literal pool
        known[upper] = machine.load((at + 4 & ~3) + 4 * (half & 0xFF)) or 0
    elif half & 0xF800 == 0x2000:  # movs
        known[upper] = half & 0xFF
    elif half & 0xF000 == 0x3000 and upper in known:  # adds, subs
        known[upper] += -(half & 0xFF) if half & 0x800 else half & 0xFF
    elif half & 0xF800 == 0x0000 and source in known:  # lsls
        known[lower] = known[source] << (half >> 6 & 31)
    elif half & 0xFFC0 == 0x4240 and source in known:  # negs
        known[lower] = -known[source]
    elif 0x4400 <= half < 0x4700:  # add, mov with high registers
        machine.forget(half >> 4 & 8 | lower)
    elif half & 0xF000 == 0xC000 or half & 0xFE00 == 0xBC00:  # ldm, stm, pop
        machine.forget(upper, *(register for register in range(8) if half >> register & 1))
    elif half < 0xC000:
        machine.forget(lower, upper)


def _arm_branch(at: int, first: int, second: int) -> Effect:
    """Decode BL, B.W and the conditional B.W, which share an encoding."""
    sign = first >> 10 & 1
    if second & 0xD000 == 0x8000:
        if first >> 6 & 15 >= 14:
            return Effect(4)
        raw = _gather(second, (11, 1, 19), (13, 1, 18), (0, 11, 1))
        raw |= sign << 20 | (first & 0x3F) << 12
        return Effect(4, jump=at + 4 + signed(raw, 21))
    upper = ~(second >> 13 ^ sign) & 1
    lower = ~(second >> 11 ^ sign) & 1
    raw = sign << 24 | upper << 23 | lower << 22 | (first & 0x3FF) << 12 | (second & 0x7FF) << 1
    goal = at + 4 + signed(raw, 25)
    if second & 0xD000 == 0xD000:
        return Effect(4, call=goal)
    return Effect(4, jump=goal, ends=True)


def _arm_constant(raw: int) -> int:
    """Expand the 12-bit modified immediate of Thumb-2 (ThumbExpandImm)."""
    if raw >> 10 == 0:
        byte = raw & 0xFF
        return (byte, byte * 0x10001, byte * 0x1000100, byte * 0x1010101)[raw >> 8 & 3]
    value, turn = 0x80 | raw & 0x7F, raw >> 7
    return (value >> turn | value << (32 - turn)) & 0xFFFFFFFF


def _arm_wide(machine: MachineState, at: int, first: int, second: int) -> Effect:
    machine.popped = 0
    raw = (first >> 10 & 1) << 11 | (second >> 12 & 7) << 8 | second & 0xFF
    if first & 0xF800 == 0xF000 and second & 0x8000:
        return _arm_branch(at, first, second)
    if first == 0xE92D:
        return Effect(4, grows=4 * second.bit_count())
    if first in (0xED2D, 0xE96D):  # vpush; strd with write-back
        return Effect(4, grows=4 * (second & 0xFF))
    if first == 0xF84D and second & 0x0F00 == 0x0D00:
        return Effect(4, grows=second & 0xFF)
    if first & 0xFBEF == 0xF1AD and second & 0x8F00 == 0x0D00:
        return Effect(4, grows=_arm_constant(raw))
    if first & 0xFBFF == 0xF2AD and second & 0x8F00 == 0x0D00:
        return Effect(4, grows=raw)
    if first & 0xFFEF in (0xEBAD, 0xEB0D) and second & 0x0F00 == 0x0D00:
        sign = -1 if first & 0xFFEF == 0xEBAD else 1
        return _move(4, machine.known.get(second & 15), sign)
    machine.forget(first & 15, second >> 12, second >> 8 & 15, second & 15)
    if first & 0xFBF0 == 0xF240 and not second & 0x8000:
        machine.known[second >> 8 & 15] = (first & 15) << 12 | raw
    elif first & 0xFBEF == 0xF04F and not second & 0x8000:
        machine.known[second >> 8 & 15] = _arm_constant(raw)
    elif first == 0xF8DF and second >> 12 != 15:
        machine.known[second >> 12] = machine.load((at + 4 & ~3) + (second & 0xFFF)) or 0
    elif first == 0xE8BD or (first == 0xF85D and second & 0x0F00 == 0x0B00):
        leaves = second & 0x8000 if first == 0xE8BD else second >> 12 == 15
        return Effect(4, ends=bool(leaves))
    elif first & 0xFFF0 == 0xE8D0 and second & 0xFFE0 == 0xF000:
        return Effect(4, ends=True)  # a table branch stays inside its function
    elif first & 0xFF70 == 0xF850 and second >> 12 == 15:
        return Effect(4, ends=True, problem=COMPUTED_JUMP)
    return Effect(4)


def _riscv(machine: MachineState, at: int, half: int) -> Effect:
    if half & 3 != 3:
        return _riscv_short(machine, at, half)
    word = half | (machine.load(at + 2, 2) or 0) << 16
    opcode, target, source = word & 0x7F, word >> 7 & 31, word >> 15 & 31
    immediate = signed(word >> 20, 12)
    if opcode == 0x13 and word >> 12 & 7 == 0:
        if target == 2:
            return _move(4, immediate if source == 2 else None)
        if source == 0 or source in machine.known:
            machine.known[target] = machine.known.get(source, 0) + immediate
        else:
            machine.forget(target)
    elif opcode in (0x17, 0x37):  # auipc, lui
        base = at if opcode == 0x17 else 0
        machine.known[target] = base + signed(word & 0xFFFFF000, 32)
    elif opcode == 0x33 and target == 2:
        return _move(4, machine.known.get(word >> 20 & 31), -1 if word >> 30 & 1 else 1)
    elif opcode == 0x6F:
        raw = _gather(word, (31, 1, 20), (12, 8, 12), (20, 1, 11), (21, 10, 1))
        return _riscv_jump(4, target, at + signed(raw, 21))
    elif opcode == 0x67:
        if target == 0 and source == 1:
            return Effect(4, ends=True)
        base_value = machine.known.get(source)
        return _riscv_jump(4, target, None if base_value is None else base_value + immediate)
    elif opcode == 0x63:
        raw = _gather(word, (31, 1, 12), (7, 1, 11), (25, 6, 5), (8, 4, 1))
        return Effect(4, jump=at + signed(raw, 13))
    else:
        machine.forget(target)
    return Effect(4)


def _riscv_jump(size: int, link: int, goal: int | None) -> Effect:
    """Return the effect of a jump that keeps its return address in register `link`."""
    if link == 0:
        wrong = COMPUTED_JUMP if goal is None else ""
        return Effect(size, jump=goal, ends=True, problem=wrong)
    if link != 1 or goal is None:
        return Effect(size, problem=INDIRECT_CALL)
    return Effect(size, call=goal & 0xFFFFFFFF)


def _riscv_short(machine: MachineState, at: int, half: int) -> Effect:
    group, register = half & 0xE003, half >> 7 & 31
    small = signed(_gather(half, (12, 1, 5), (2, 5, 0)), 6)
    if group == 0x6001 and register == 2:
        raw = _gather(half, (12, 1, 9), (6, 1, 4), (5, 1, 6), (3, 2, 7), (2, 1, 5))
        return _move(2, signed(raw, 10))
    if group == 0x0001 and register == 2:
        return _move(2, small)
    if group == 0x0001 and register in machine.known:
        machine.known[register] += small
    elif group in (0x4001, 0x6001):  # c.li, c.lui
        machine.known[register] = small << (12 if group == 0x6001 else 0)
    elif group in (0x2001, 0xA001):  # c.jal, c.j
        raw = _gather(half, (12, 1, 11), (11, 1, 4), (9, 2, 8), (8, 1, 10), (7, 1, 6))
        raw |= _gather(half, (6, 1, 7), (3, 3, 1), (2, 1, 5))
        return _riscv_jump(2, 1 if group == 0x2001 else 0, at + signed(raw, 12))
    elif group in (0xC001, 0xE001):
        raw = _gather(half, (12, 1, 8), (10, 2, 3), (5, 2, 6), (3, 2, 1), (2, 1, 5))
        return Effect(2, jump=at + signed(raw, 9))
    elif half & 0xF07F == 0x8002 and register:  # c.jr
        known = machine.known.get(register)
        return Effect(2, ends=True) if register == 1 else _riscv_jump(2, 0, known)
    elif half & 0xF07F == 0x9002 and register:  # c.jalr
        return _riscv_jump(2, 1, machine.known.get(register))
    elif half & 0xF003 == 0x9002 and register == 2:  # c.add sp, register
        return _move(2, machine.known.get(half >> 2 & 31))
    else:
        machine.forget(register, 8 + (half >> 2 & 7), 8 + (half >> 7 & 7))
    return Effect(2)


def _xtensa(machine: MachineState, at: int, word: int) -> Effect:
    kind = word & 15
    if kind >= 8:
        if kind == 12 and not word & 0x80:  # movi.n
            value = (word >> 4 & 7) << 4 | word >> 12 & 15
            machine.known[word >> 8 & 15] = value - 128 if value >= 96 else value
        elif kind == 12:  # beqz.n, bnez.n
            return Effect(2, jump=at + 4 + ((word >> 4 & 3) << 4 | word >> 12 & 15))
        else:
            machine.forget(word >> 4 & 15, word >> 12 & 15)
        return Effect(2, ends=word == 0xF00D)
    word = machine.load(at, 3) or 0
    t, s, r, byte = word >> 4 & 15, word >> 8 & 15, word >> 12 & 15, word >> 16
    if kind == 0:
        return _xtensa_register(machine, word)
    if kind == 1:  # l32r
        literal = machine.load((at + 3 & ~3) + ((word >> 8) - 0x10000) * 4)
        machine.forget(t)
        if literal is not None:
            machine.known[t] = literal
    elif kind == 2 and r in (12, 13) and t == 1:  # addi, addmi to the stack pointer
        change = signed(byte, 8) << (8 if r == 13 else 0)
        return _move(3, change if s == 1 else None)
    elif kind == 2 and r == 10:  # movi
        machine.known[t] = signed(s << 8 | byte, 12)
    elif kind in (2, 3):
        machine.forget(t)
    elif kind == 5:
        if word >> 4 & 3:
            return Effect(3, problem="it uses register windows")
        return Effect(3, call=(at & ~3) + 4 * signed(word >> 6, 18) + 4)
    elif kind in (6, 7):
        return _xtensa_branch(at, word)
    return Effect(3)


def _xtensa_branch(at: int, word: int) -> Effect:
    """Decode j and the conditional branches."""
    form, which = word >> 4 & 3, word >> 6 & 3
    if word & 15 == 7 or form == 2 or (form == 3 and which >= 2):
        return Effect(3, jump=at + 4 + signed(word >> 16, 8))
    if form == 0:
        return Effect(3, jump=at + 4 + signed(word >> 6, 18), ends=True)
    if form == 1:
        return Effect(3, jump=at + 4 + signed(word >> 12, 12))
    return Effect(3, problem="" if which else "it uses register windows")


def _xtensa_register(machine: MachineState, word: int) -> Effect:
    """Decode the instructions between registers: add and sub on the stack pointer, jumps."""
    t, s, r = word >> 4 & 15, word >> 8 & 15, word >> 12 & 15
    operation = word >> 16
    if operation == 0 and r == 0:
        if word == 0x000080:
            return Effect(3, ends=True)
        known = machine.known.get(s)
        if t == 12:  # callx0
            return Effect(3, call=known, problem="" if known is not None else INDIRECT_CALL)
        if t == 10:  # jx
            returns = s == 0
            wrong = "" if returns or known is not None else COMPUTED_JUMP
            return Effect(3, jump=None if returns else known, ends=True, problem=wrong)
    elif operation in (0x80, 0xC0) and r == 1:
        sign = -1 if operation == 0xC0 else 1
        return _move(3, machine.known.get(t) if s == 1 else None, sign)
    elif word == 0x201110:  # mov a1, a1: left by the linker of a call that became shorter
        return Effect(3)
    elif operation == 0x20 and r == 1 and s == t:  # mov a1, register
        return Effect(3, problem=VARIABLE_STACK)
    value = machine.known.get(s)
    machine.forget(r, t)
    if operation in (0x01, 0x11) and value is not None:  # slli
        machine.known[r] = value << (32 - (operation & 0x10 | t))
    return Effect(3)


_AVR_Y = 28  # the frame pointer, r28 and r29; what is known of it is its distance from the stack's


def _avr_size(half: int) -> int:
    """Bytes of an instruction: lds, sts, jmp and call hold an address."""
    return 4 if half & 0xFC0F == 0x9000 or half & 0xFE0C == 0x940C else 2


def _avr(machine: MachineState, at: int, half: int) -> Effect:
    if half & 0xFE0F == 0x920F:  # push
        return Effect(2, grows=1)
    if half & 0xFE0E in (0x940C, 0x940E):  # jmp, call
        goal = 2 * ((half >> 4 & 31) << 17 | (half & 1) << 16 | (machine.load(at + 2, 2) or 0))
        return Effect(4, call=goal) if half & 2 else Effect(4, jump=goal, ends=True)
    if half & 0xF000 in (0xC000, 0xD000):  # rjmp, rcall
        goal = at + 2 + 2 * signed(half, 12)
        if half == 0xD000:
            return Effect(2, grows=2)  # a call of what follows makes room for two bytes
        return Effect(2, call=goal) if half & 0x1000 else Effect(2, jump=goal, ends=True)
    if half & 0xF800 == 0xF000:  # conditional branches
        return Effect(2, jump=at + 2 + 2 * signed(half >> 3, 7))
    if half & 0xFC00 in (0x1000, 0xFC00) or half & 0xFD00 == 0x9900:  # skips: cpse, sbrc, sbic, ...
        return Effect(2, jump=at + 2 + _avr_size(machine.load(at + 2, 2) or 0))
    if half in (0x9508, 0x9518):  # ret, reti
        return Effect(2, ends=True)
    if half in (0x9509, 0x9519):  # icall, eicall
        return Effect(2, problem=INDIRECT_CALL)
    if half in (0x9409, 0x9419):  # ijmp, eijmp
        return Effect(2, ends=True, problem=COMPUTED_JUMP)
    return _avr_frame(machine, half)


def _avr_frame(machine: MachineState, half: int) -> Effect:
    """Follow the frame pointer until it becomes the stack pointer."""
    constant = half >> 4 & 0xF0 | half & 15
    pair = half >> 2 & 0x30 | half & 15
    distance = machine.known.get(_AVR_Y, 0)
    if half == 0xB7CD:  # in r28, SPL
        machine.known[_AVR_Y] = 0
    elif half & 0xFE30 == 0x9620:  # adiw, sbiw r28
        machine.known[_AVR_Y] = distance + (-pair if half & 0x100 else pair)
    elif half & 0xF0F0 == 0x50C0:  # subi r28
        machine.known[_AVR_Y] = distance - constant
    elif half & 0xF0F0 == 0x40D0:  # sbci r29
        machine.known[_AVR_Y] = signed(distance - 256 * constant, 16)
    elif half & 0xFE0F == 0xBE0D:  # out SPL
        if half >> 4 & 31 != _AVR_Y:
            return Effect(2, problem=VARIABLE_STACK)
        machine.known[_AVR_Y] = 0
        return _move(2, distance)
    return Effect(_avr_size(half))


_DECODERS = {"arm": _arm, "riscv": _riscv, "xtensa": _xtensa, "avr": _avr}


def decode(family: str, machine: MachineState, at: int) -> Effect:
    """Decode the instruction at an address."""
    half = machine.load(at, 2)
    if half is None:
        return Effect(2, ends=True, problem="its code lies outside the program")
    return _DECODERS[family](machine, at, half)

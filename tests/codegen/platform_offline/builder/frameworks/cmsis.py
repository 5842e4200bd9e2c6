"""SCons script: a bare program; the debugger's console stands for a serial port."""

Import("env")  # noqa: F821

env.Append(CPPDEFINES=["TK_SEMIHOSTING"])  # noqa: F821

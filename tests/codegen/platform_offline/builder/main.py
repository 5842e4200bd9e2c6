"""SCons script: compilers of the system, start-up code of the emulated board."""

import os

from SCons.Script import Default, DefaultEnvironment

env = DefaultEnvironment()
board = env.BoardConfig()
prefix = board.get("build.prefix")
env.Replace(
    AR=f"{prefix}ar",
    AS=f"{prefix}as",
    CC=f"{prefix}gcc",
    CXX=f"{prefix}g++",
    LINK=f"{prefix}gcc",
    RANLIB=f"{prefix}ranlib",
    PROGNAME="firmware",
    PROGSUFFIX=".elf",
)
flags = board.get("build.flags").split()
env.Append(
    CCFLAGS=[*flags, "-ffunction-sections", "-fdata-sections"],
    CXXFLAGS=["-fno-exceptions", "-fno-rtti"],
    LINKFLAGS=[*flags, "-nostartfiles", "-Wl,--gc-sections", "-T", "$PROJECT_DIR/board.ld"],
)
# The start-up code and board.ld are those with which the package runs models in emulators.
start = os.path.join("$PROJECT_DIR", "emulated")
env.Append(CPPPATH=[start])
env.BuildSources(os.path.join("$BUILD_DIR", "emulated"), start)
Default(env.BuildProgram())

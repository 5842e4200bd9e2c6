"""SCons script: the few functions of the Arduino framework that an exported project uses."""

import os

Import("env")  # noqa: F821

folder = os.path.join(env.PioPlatform().get_dir(), "arduino")  # noqa: F821
env.Append(CPPPATH=[folder])  # noqa: F821
env.BuildSources(os.path.join("$BUILD_DIR", "arduino"), folder)  # noqa: F821

"""A PlatformIO platform without packages: everything comes from the system."""

from platformio.platform.base import PlatformBase


class OfflinePlatform(PlatformBase):
    """See builder/main.py."""

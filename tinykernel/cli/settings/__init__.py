"""Settings of ``train``, ``tune`` and ``export``: options, ``--set``, ``tinykernel.toml``."""

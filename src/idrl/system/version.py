"""The version, as pyproject.toml says it. A source tree may run without being installed, so that
asking for the package's would fail."""

VERSION = "0.1.0"

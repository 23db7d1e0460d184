"""A pytest plugin: `pytest -p purax.compat.pytest` runs tests of JAX programs on purax.

Named with `-p`, on the command line or in the `addopts` of the ini file, it is imported before every test module and
conftest.
"""

from __future__ import annotations

from typing import Any

from purax.compat.finder import install
from purax.compat.version import JAX_VERSION, PURAX_VERSION

install()


def pytest_report_header(config: Any) -> str:
    return f"jax: {JAX_VERSION}, provided by purax {PURAX_VERSION}"

"""A plugin for pytest: with `-p purax.testing.pytest_plugin --purax-strict`, side effects under tracing are errors."""

from __future__ import annotations

from typing import Any

from purax.config import config


def pytest_addoption(parser: Any) -> None:
    """Adds the option `--purax-strict`."""
    group = parser.getgroup("purax")
    group.addoption(
        "--purax-strict",
        action="store_true",
        default=False,
        help="raise purax.errors.ImpureFunctionError where a traced function has a side effect",
    )


def pytest_configure(config: Any) -> None:
    """Turns strict purity on for the whole run."""
    if config.getoption("--purax-strict"):
        _make_strict()


def _make_strict() -> None:
    config.update("purity", "strict")

"""Runs when a Python process starts below one in which purax stands in for jax: prepares the same here.

Nothing of purax is imported before the process imports jax. Another `sitecustomize` further down the path is run too.
"""

import os
import sys

_FOLDER = os.path.dirname(os.path.abspath(__file__))


class _UntilJaxIsImported:
    """Waits for the first import of jax, or question after its version, and then hands over to purax's finder."""

    def find_spec(self, name, path=None, target=None):
        if name == "jax" or name.startswith("jax."):
            return self._hand_over().find_spec(name, path, target)
        return None

    def find_distributions(self, context=None):
        if getattr(context, "name", None) == "jax":
            return self._hand_over().find_distributions(context)
        return iter(())

    def _hand_over(self):
        import importlib.util

        if self in sys.meta_path:
            sys.meta_path.remove(self)
            if (
                importlib.util.find_spec("purax") is None
            ):  # the parent had it from a folder that it changed away from
                sys.path.append(os.path.dirname(os.path.dirname(os.path.dirname(_FOLDER))))
        importlib.import_module("purax.compat.jax")
        return sys.meta_path[0]


def _run_the_next_one():
    """Runs the `sitecustomize` that this one hides, if there is one."""
    this = sys.modules.pop("sitecustomize", None)
    try:
        import sitecustomize  # noqa: F401
    except ImportError as error:
        if error.name != "sitecustomize":
            raise
        sys.modules["sitecustomize"] = this  # the import that runs this file expects to find it there


sys.path[:] = [folder for folder in sys.path if os.path.abspath(folder) != _FOLDER]
if os.environ.get("PURAX_COMPAT_JAX") == "1":
    sys.meta_path.insert(0, _UntilJaxIsImported())
_run_the_next_one()

"""`jax.monitoring`: events that libraries record and listeners for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_listeners: dict[str, list[Callable]] = {"event": [], "duration": [], "time_span": [], "scalar": []}

__all__ = [
    "clear_event_listeners",
    "record_event",
    "record_event_duration_secs",
    "record_event_time_span",
    "record_scalar",
    "register_event_duration_secs_listener",
    "register_event_listener",
    "register_event_time_span_listener",
    "register_scalar_listener",
    "unregister_event_duration_listener",
    "unregister_event_listener",
    "unregister_event_time_span_listener",
    "unregister_scalar_listener",
]


def _record(kind: str, *values: Any, **details: Any) -> None:
    for listener in tuple(_listeners[kind]):
        listener(*values, **details)


def record_event(event: str, **kwargs: str | int) -> None:
    """Tells the listeners that something happened."""
    _record("event", event, **kwargs)


def record_event_duration_secs(event: str, duration: float, **kwargs: str | int) -> None:
    """Tells the listeners how long something took."""
    _record("duration", event, duration, **kwargs)


def record_event_time_span(event: str, start_time: float, end_time: float, **kwargs: str | int) -> None:
    """Tells the listeners when something began and ended."""
    _record("time_span", event, start_time, end_time, **kwargs)


def record_scalar(event: str, value: float | int, **kwargs: str | int) -> None:
    """Tells the listeners a number."""
    _record("scalar", event, value, **kwargs)


def register_event_listener(callback: Callable) -> None:
    """Calls `callback(event, **details)` for every event."""
    _listeners["event"].append(callback)


def register_event_duration_secs_listener(callback: Callable) -> None:
    """Calls `callback(event, seconds, **details)` for every duration."""
    _listeners["duration"].append(callback)


def register_event_time_span_listener(callback: Callable) -> None:
    """Calls `callback(event, start, end, **details)` for every time span."""
    _listeners["time_span"].append(callback)


def register_scalar_listener(callback: Callable) -> None:
    """Calls `callback(event, value, **details)` for every number."""
    _listeners["scalar"].append(callback)


def unregister_event_listener(callback: Callable) -> None:
    """Undoes `register_event_listener`."""
    _listeners["event"].remove(callback)


def unregister_event_duration_listener(callback: Callable) -> None:
    """Undoes `register_event_duration_secs_listener`."""
    _listeners["duration"].remove(callback)


def unregister_event_time_span_listener(callback: Callable) -> None:
    """Undoes `register_event_time_span_listener`."""
    _listeners["time_span"].remove(callback)


def unregister_scalar_listener(callback: Callable) -> None:
    """Undoes `register_scalar_listener`."""
    _listeners["scalar"].remove(callback)


def clear_event_listeners() -> None:
    """Removes all listeners."""
    for listeners in _listeners.values():
        listeners.clear()

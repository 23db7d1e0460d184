"""Planning programs for devices that are not here: memory, communication and time of a step, from types alone."""

from purax.planning.costs import Communication, Resident
from purax.planning.hardware import Hardware, hardware
from purax.planning.planner import plan
from purax.planning.report import Plan, Plans

__all__ = ["Communication", "Hardware", "Plan", "Plans", "Resident", "hardware", "plan"]

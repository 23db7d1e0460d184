# Written by tools/write_stubs.py; `make stubs` writes it anew.
"""Planning programs for devices that are not here: memory, communication and time of a step, from types alone."""

from purax.planning.costs import Communication as Communication
from purax.planning.costs import Resident as Resident
from purax.planning.hardware import Hardware as Hardware
from purax.planning.hardware import hardware as hardware
from purax.planning.planner import plan as plan
from purax.planning.report import Plan as Plan
from purax.planning.report import Plans as Plans

__all__ = ['Communication', 'Hardware', 'Plan', 'Plans', 'Resident', 'hardware', 'plan']

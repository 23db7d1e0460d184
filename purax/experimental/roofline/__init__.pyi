# Written by tools/write_stubs.py; `make stubs` writes it anew.
"""How much a function must compute, read and send, counted from its program: the bounds of a roofline model."""

from purax.experimental.roofline import rooflines as rooflines
from purax.experimental.roofline.roofline import RooflineResult as RooflineResult
from purax.experimental.roofline.roofline import RooflineRuleContext as RooflineRuleContext
from purax.experimental.roofline.roofline import RooflineShape as RooflineShape
from purax.experimental.roofline.roofline import register_roofline as register_roofline
from purax.experimental.roofline.roofline import register_standard_roofline as register_standard_roofline
from purax.experimental.roofline.roofline import roofline as roofline
from purax.experimental.roofline.roofline import roofline_and_grad as roofline_and_grad

__all__ = ['RooflineResult', 'RooflineRuleContext', 'RooflineShape', 'register_roofline', 'register_standard_roofline', 'roofline', 'roofline_and_grad', 'rooflines']

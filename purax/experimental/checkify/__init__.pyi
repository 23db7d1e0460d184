# Written by tools/write_stubs.py; `make stubs` writes it anew.
"""Checks inside of transformed functions, as values: `checkify` makes a function return its first error beside its"""

from purax.experimental.checkify.check import check as check
from purax.experimental.checkify.check import check_error as check_error
from purax.experimental.checkify.check import debug_check as debug_check
from purax.experimental.checkify.errors import DivisionByZeroError as DivisionByZeroError
from purax.experimental.checkify.errors import Error as Error
from purax.experimental.checkify.errors import ErrorCategory as ErrorCategory
from purax.experimental.checkify.errors import FailedCheckError as FailedCheckError
from purax.experimental.checkify.errors import JaxRuntimeError as JaxRuntimeError
from purax.experimental.checkify.errors import NaNError as NaNError
from purax.experimental.checkify.errors import OOBError as OOBError
from purax.experimental.checkify.errors import all_checks as all_checks
from purax.experimental.checkify.errors import automatic_checks as automatic_checks
from purax.experimental.checkify.errors import div_checks as div_checks
from purax.experimental.checkify.errors import float_checks as float_checks
from purax.experimental.checkify.errors import index_checks as index_checks
from purax.experimental.checkify.errors import init_error as init_error
from purax.experimental.checkify.errors import nan_checks as nan_checks
from purax.experimental.checkify.errors import user_checks as user_checks
from purax.experimental.checkify.functionalize import checkify as checkify

__all__ = ['DivisionByZeroError', 'Error', 'ErrorCategory', 'FailedCheckError', 'JaxRuntimeError', 'NaNError', 'OOBError', 'all_checks', 'automatic_checks', 'check', 'check_error', 'checkify', 'debug_check', 'div_checks', 'float_checks', 'index_checks', 'init_error', 'nan_checks', 'user_checks']

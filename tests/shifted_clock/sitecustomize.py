"""Shifts the clock of commands of tests: Python imports this module if PYTHONPATH has its folder."""

import os
import time

_now, _seconds = time.time, float(os.environ["TESTS_CLOCK_OFFSET"])
time.time = lambda: _now() - _seconds

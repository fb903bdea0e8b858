"""Lets a command of a test believe that it is earlier: Python reads this where PYTHONPATH has its folder."""

import os
import time

_now, _seconds = time.time, float(os.environ["TESTS_EARLIER"])
time.time = lambda: _now() - _seconds

"""What to say to a request that cannot be answered."""

import math

from unlost.errors import BusyError, InputError, NotKeptError, UsageError
from unlost.service.answers import NO_STORE, Answer, text_answer


def refusal(error: InputError | UsageError | NotKeptError | BusyError) -> Answer:
    """Return the answer: 400 for what the request got wrong, 503 and 504 for what only now cannot be had."""
    match error:
        case NotKeptError():
            return text_answer(504, str(error), NO_STORE)
        case BusyError():
            return text_answer(503, str(error), NO_STORE, (b"retry-after", b"%d" % max(1, math.ceil(error.seconds))))
        case _:
            return text_answer(400, str(error))

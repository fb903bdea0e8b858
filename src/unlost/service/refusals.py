"""Responses to requests that cannot be answered."""

import logging
import math

from unlost.errors import BusyError, DateError, InputError, NotKeptError, UriError, UsageError
from unlost.service.answers import NO_STORE, WebResponse, text_response

_log = logging.getLogger(__name__)


def is_public_error(error: Exception) -> bool:
    """Return whether clients may read the message of an error.

    That of an input which is not part of the request has the path of a file, or the URL of a database.
    """
    return not isinstance(error, InputError) or isinstance(error, UriError | DateError)


def error_response(error: InputError | UsageError | NotKeptError | BusyError) -> WebResponse:
    """Return the response: 400 for a malformed request, 503 and 504 for what is not available now."""
    match error:
        case NotKeptError():
            return text_response(504, str(error), NO_STORE)
        case BusyError():
            return text_response(503, str(error), NO_STORE, (b"retry-after", b"%d" % max(1, math.ceil(error.seconds))))
        case _ if not is_public_error(error):
            _log.error("%s", error)
            return text_response(503, "A file of the service cannot be read", NO_STORE, (b"retry-after", b"60"))
        case _:
            return text_response(400, str(error))

"""Every error of ours is a problem by its type, and tells callers no more than they can mend."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from starlette.requests import Request

from concordance import errors
from concordance.http.problems import of_ours

SECRET = "postgresql://ada:s3cret@db.example.org"
REQUEST = Request({"type": "http", "method": "GET", "path": "/", "headers": []})
# What a caller can mend, or is told by an answer, too.
TOLD = {
    errors.RequestRefused: 403,
    errors.UnknownProject: 404,
    errors.NothingIndexed: 404,
    errors.BadRequest: 422,
    errors.TooManyRequests: 503,
    errors.RequestTimeout: 504,
    errors.ProviderTimeout: 504,
    errors.ProviderError: 503,
    errors.OrchestrationError: 503,
}


def kinds(root: type[errors.ConcordanceError]) -> Iterator[type[errors.ConcordanceError]]:
    yield root
    for kind in root.__subclasses__():
        yield from kinds(kind)


ALL = sorted(set(kinds(errors.ConcordanceError)), key=str)


@pytest.mark.parametrize("kind", ALL)
def test_every_error_is_a_problem(kind: type[errors.ConcordanceError]) -> None:
    response = of_ours(REQUEST, kind(SECRET, hint=f"look into {SECRET}"))
    problem = json.loads(bytes(response.body))
    expected = next((TOLD[base] for base in kind.__mro__ if base in TOLD), None)
    assert (SECRET in problem["detail"]) == (expected is not None)
    assert "look into" not in bytes(response.body).decode()
    if expected is not None:
        assert response.status_code == expected
    elif issubclass(kind, errors.DatabaseConflict | errors.DatabaseUnavailable):
        assert response.status_code == 503
    else:
        assert response.status_code == 500
    assert ("retry-after" in response.headers) == (response.status_code in (503, 504))
    assert problem["type"].startswith("urn:concordance:problem:")

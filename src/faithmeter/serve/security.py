"""Middleware for security headers and for checks of the host, token, origin and size of each request."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from .admission import FAILURE

CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
SECURITY_HEADERS = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-cache",
}
TOKEN_PARAMETER = "token"

logger = logging.getLogger(__name__)


class SecurityHeaders:
    """Middleware that adds security headers and turns unhandled exceptions into responses with status 500."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        started = False

        async def send_with_headers(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                MutableHeaders(scope=message).update(SECURITY_HEADERS)
            await send(message)

        try:
            await self.app(scope, receive, send_with_headers)
        except Exception:
            if started:
                raise  # too late for another response: the server logs the error and closes the connection
            logger.exception("a request failed")
            await _refusal(500, FAILURE)(scope, receive, send_with_headers)


class RequireHost:
    """Middleware that refuses requests whose Host header is not in `hosts`, to prevent DNS rebinding.

    Starlette does the check; this class replaces its response with a JSON error.
    """

    def __init__(self, app: ASGIApp, *, hosts: Sequence[str]) -> None:
        self.app, self.hosts = app, list(hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        # Starlette's middleware answers in plain text; only its decision is used
        async def accept(scope: Scope, receive: Receive, _: Send) -> None:
            await self.app(scope, receive, send)

        async def refuse(message: Message) -> None:
            if message["type"].endswith("response.start"):
                detail = "unknown host name; start the server with --allowed-host NAME"
                await _refusal(400, detail)(scope, receive, send)

        await TrustedHostMiddleware(accept, self.hosts, www_redirect=False)(scope, receive, refuse)


class RequireToken:
    """Middleware that refuses requests without the token, sent as a bearer token or in a cookie.

    The link `/?token=…` sets the cookie and redirects to `/`, which keeps the token out of the history.
    """

    def __init__(self, app: ASGIApp, *, token: str) -> None:
        self.app, self.token = app, token.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        request = Request(scope)
        cookie = f"faithmeter-{(scope.get('server') or ('', ''))[1]}"  # cookies are shared between ports
        scheme, _, credentials = request.headers.get("authorization", "").partition(" ")
        if self._matches(request.cookies.get(cookie)) or (
            scheme.lower() == "bearer" and self._matches(credentials.strip())
        ):
            return await self.app(scope, receive, send)
        if scope["path"] == "/" and self._matches(request.query_params.get(TOKEN_PARAMETER)):
            redirect = RedirectResponse(".", 303)
            # not `secure`, as the server itself speaks HTTP; not readable by scripts of a page
            redirect.set_cookie(cookie, self.token.decode(), httponly=True, samesite="lax")
            return await redirect(scope, receive, send)
        detail = (
            "this server requires its token; open the link that it printed, or send Authorization: Bearer"
        )
        return await _refusal(401, detail, {"WWW-Authenticate": "Bearer"})(scope, receive, send)

    def _matches(self, candidate: str | None) -> bool:
        # in constant time: the time of an ordinary comparison tells how many characters are right
        return candidate is not None and secrets.compare_digest(
            candidate.encode(errors="replace"), self.token
        )


def _is_from_own_page(headers: Headers) -> bool:
    """Return whether this server's own page sent a request, or a client that is no browser.

    A page of another port of this machine is of the same site, so only `same-origin` will do. Browsers leave
    that header out if the connection is neither encrypted nor local; then the origin must be this host.
    """
    site, origin = headers.get("sec-fetch-site"), headers.get("origin")
    if site is not None:
        return site in ("same-origin", "none")
    return origin is None or urlsplit(origin).netloc.lower() == headers.get("host", "").lower()


class LimitRequests:
    """Middleware that refuses requests of other pages and bodies of more than `max_bytes`.

    GET and HEAD requests pass unchecked, because they compute nothing.
    """

    def __init__(self, app: ASGIApp, *, max_bytes: int) -> None:
        self.app, self.max_bytes = app, max_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] in ("GET", "HEAD"):
            return await self.app(scope, receive, send)
        if not _is_from_own_page(Headers(scope=scope)):
            detail = "pages of other sites and ports may not use this server; open its own page"
            return await _refusal(403, detail)(scope, receive, send)
        body = await self._read(receive)
        if body is None:
            return None
        if len(body) > self.max_bytes:
            detail = f"the request has more than {self.max_bytes} bytes; send a shorter text"
            return await _refusal(413, detail)(scope, receive, send)
        # the body was taken from the connection, so it is given to the application once more
        messages = iter([{"type": "http.request", "body": body, "more_body": False}])

        async def replay() -> Message:
            return next(messages, None) or await receive()

        return await self.app(scope, replay, send)

    async def _read(self, receive: Receive) -> bytes | None:
        """Return the body, or None if the client disconnected; reading stops once the limit is exceeded."""
        parts, size, more = [], 0, True
        while more and size <= self.max_bytes:  # a client may lie about Content-Length, or leave it out
            message: dict[str, Any] = dict(await receive())
            if message["type"] == "http.disconnect":
                return None
            parts.append(message.get("body", b""))
            size, more = size + len(parts[-1]), message.get("more_body", False)
        return b"".join(parts)


def _refusal(status: int, detail: str, headers: dict[str, str] | None = None) -> JSONResponse:
    return JSONResponse({"detail": detail}, status, headers)

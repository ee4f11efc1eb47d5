"""What every request passes: host, size, origin, and the headers that keep a browser from doing harm."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from starlette.datastructures import Headers, MutableHeaders
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-cache",
}


class SafeHeaders:
    """Adds the headers to every response."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        await self.app(scope, receive, send_with_headers)


class KnownHost:
    """Refuses requests to other names than these `hosts`: starlette's check, with our answer."""

    def __init__(self, app: ASGIApp, *, hosts: Sequence[str]) -> None:
        self.app, self.hosts = app, list(hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def known(scope: Scope, receive: Receive, _: Send) -> None:
            await self.app(scope, receive, send)

        async def refused(message: Message) -> None:
            if message["type"].endswith("response.start"):
                await _refused(400, "asked by an unknown name; start the server with --allowed-host NAME")(
                    scope, receive, send
                )

        await TrustedHostMiddleware(known, self.hosts, www_redirect=False)(scope, receive, refused)


class Border:
    """Refuses what another site's page sends, and bodies of more than `limit` bytes, however sent."""

    def __init__(self, app: ASGIApp, *, limit: int) -> None:
        self.app, self.limit = app, limit

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] in ("GET", "HEAD"):
            return await self.app(scope, receive, send)
        headers = Headers(scope=scope)
        if headers.get("sec-fetch-site") == "cross-site":
            return await _refused(403, "the page of another site may not ask this model")(
                scope, receive, send
            )
        body = await self._body(receive)
        if body is None:
            return None
        if len(body) > self.limit:
            said = f"the request has more than {self.limit} bytes; send a shorter text"
            return await _refused(413, said)(scope, receive, send)
        messages = iter([{"type": "http.request", "body": body, "more_body": False}])

        async def replay() -> Message:
            return next(messages, None) or await receive()

        return await self.app(scope, replay, send)

    async def _body(self, receive: Receive) -> bytes | None:
        """The body, cut off somewhere beyond the limit; None when the client went away."""
        parts, size, more = [], 0, True
        while more and size <= self.limit:
            message: dict[str, Any] = dict(await receive())
            if message["type"] == "http.disconnect":
                return None
            parts.append(message.get("body", b""))
            size, more = size + len(parts[-1]), message.get("more_body", False)
        return b"".join(parts)


def _refused(status: int, detail: str) -> JSONResponse:
    return JSONResponse({"detail": detail}, status)

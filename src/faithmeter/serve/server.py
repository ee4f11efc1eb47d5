"""HTTP server of the application: its socket, limits on connections and time, and the log."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import sys
import time
from contextlib import suppress
from ipaddress import ip_address

import h11
import uvicorn
from fastapi import FastAPI
from uvicorn.protocols.http.h11_impl import H11Protocol

from ..errors import InputError, escape_controls

MAX_CONNECTIONS = 128
ACCEPT_BACKLOG = 64
"""Connections accepted at once; this plus `MAX_CONNECTIONS` stays below the usual limit of open files."""
REQUEST_SECONDS = 15.0
"""Time that a client has to send one request, headers and body together."""
SEND_SECONDS = 30.0
"""Time that a client may leave a response unread."""
SHUTDOWN_SECONDS = 3
LOG_WINDOW_SECONDS = 60.0
MAX_LOG_RECORDS = 10
"""Log records allowed per window; further records are counted but not written."""
MAX_LOG_CHARACTERS = 5000
"""Maximum length of a log record; the middle of a longer one is cut, so the error at its end remains."""
TIMEOUT_RESPONSE = b"HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens on this address.

    Call this before loading the model, so that a busy port is reported at once. The socket is created with
    an explicit protocol because asyncio disables Nagle's delay (40 ms) only on sockets marked as TCP.

    Raises:
        InputError: The address is not available on this machine, or the port is in use.
    """
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, proto=socket.IPPROTO_TCP)[0]
        listening = socket.socket(family, kind, protocol)
        try:
            # allows a quick restart; on Windows it would allow two servers on one port
            if os.name == "posix":
                listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.bind(address)
            listening.listen(ACCEPT_BACKLOG)
        except OSError:
            listening.close()
            raise
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(
            f"cannot listen on {host}, port {port}: {reason}; try another --port or --host"
        ) from error
    return listening


def is_loopback(listening: socket.socket) -> bool:
    """Return whether the socket is bound to a loopback address, which only this machine can reach."""
    return ip_address(listening.getsockname()[0]).is_loopback


def run_server(app: FastAPI, listening: socket.socket) -> None:
    """Serve the application until Ctrl-C, and write the log to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(LogFormatter("%(levelname)s: %(message)s"))
    handler.addFilter(LogLimit())
    logging.getLogger().addHandler(handler)
    with suppress(KeyboardInterrupt):
        create_server(app).run(sockets=[listening])


def create_server(app: FastAPI) -> uvicorn.Server:
    """Return a server that stops all jobs at shutdown, before it waits for connections to close."""

    class Server(uvicorn.Server):
        async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
            app.state.admission.close()  # else the server waits for jobs that nobody reads any more
            await super().shutdown(sockets)

    return Server(
        uvicorn.Config(
            app,
            http=LimitedConnection,
            ws="none",
            lifespan="off",  # the application starts no work of its own
            log_config=None,
            log_level="warning",
            access_log=False,  # paths may hold the token
            server_header=False,
            backlog=ACCEPT_BACKLOG,
            timeout_graceful_shutdown=SHUTDOWN_SECONDS,
        )
    )


class LimitedConnection(H11Protocol):
    """HTTP connection whose client must send each request and read each response within a time limit.

    Beyond `MAX_CONNECTIONS`, the connection whose request has been incomplete for the longest time is closed.
    Slow clients therefore cannot block the others.
    """

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._update_request_timer()
        if len(self.connections) > MAX_CONNECTIONS:
            self._close_slowest()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._update_request_timer()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._update_request_timer()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._timers["send"] = self.loop.call_later(SEND_SECONDS, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._stop_timer("send")

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._stop_timer("request")
        self._stop_timer("send")

    def _update_request_timer(self) -> None:
        """Start or stop the timer, which runs while the server waits for a request or the rest of one."""
        if self.conn.their_state not in (h11.IDLE, h11.SEND_BODY):
            self._stop_timer("request")
        elif "request" not in self._timers and not self.transport.is_closing():
            self._timers["request"] = self.loop.call_later(REQUEST_SECONDS, self._end_request)

    def _stop_timer(self, name: str) -> None:
        timer = self._timers.pop(name, None)
        if timer:
            timer.cancel()

    def _end_request(self) -> None:
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            self.transport.write(TIMEOUT_RESPONSE)
        if self.transport.get_write_buffer_size():  # the client is not reading, and close() would wait for it
            self.transport.abort()
        else:
            self.transport.close()

    def _close_slowest(self) -> None:
        deadlines: dict[LimitedConnection, float] = {}
        for connection in self.connections:
            if isinstance(connection, LimitedConnection) and "request" in connection._timers:
                deadlines[connection] = connection._timers["request"].when()
        # the connection that has just come waits for its first request, so there is at least one
        slowest = min(deadlines, key=deadlines.__getitem__)
        slowest._stop_timer("request")
        self.connections.discard(slowest)  # now: more connections may arrive before connection_lost is called
        slowest.transport.abort()


class LogLimit(logging.Filter):
    """Filter that drops log records beyond `MAX_LOG_RECORDS` per window.

    The first record of the next window reports how many were dropped.
    """

    def __init__(self) -> None:
        super().__init__()
        self.window_start, self.records, self.dropped = -LOG_WINDOW_SECONDS, 0, 0

    def filter(self, record: logging.LogRecord) -> bool:
        now = time.monotonic()
        if now - self.window_start >= LOG_WINDOW_SECONDS:
            if self.dropped:
                record.msg, record.args = f"{record.getMessage()} ({self.dropped} records were dropped)", ()
            self.window_start, self.records, self.dropped = now, 0, 0
        self.records += 1
        self.dropped += self.records > MAX_LOG_RECORDS
        return self.records <= MAX_LOG_RECORDS


class LogFormatter(logging.Formatter):
    """Formatter that shortens long records and escapes control characters, to protect the terminal."""

    def format(self, record: logging.LogRecord) -> str:
        text = super().format(record)
        if len(text) > MAX_LOG_CHARACTERS:  # a traceback may quote a request
            text = f"{text[: MAX_LOG_CHARACTERS // 2]} … {text[-MAX_LOG_CHARACTERS // 2 :]}"
        return escape_controls(text)

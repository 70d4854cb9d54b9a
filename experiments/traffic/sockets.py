"""The bytes that this process has received over TCP, as the kernel of the operating system counts them (Linux)."""

from __future__ import annotations

import os
import socket
import stat
import struct
from contextlib import suppress
from pathlib import Path

BYTES_RECEIVED = 128
"""Where struct tcp_info (linux/tcp.h) has tcpi_bytes_received, 8 bytes long."""


def received() -> int:
    """Bytes of data, without the headers of packets, summed over the open TCP connections of this process."""
    return sum(_received(int(entry.name)) for entry in Path("/proc/self/fd").iterdir())


def _received(descriptor: int) -> int:
    """Of one descriptor; 0 if it is no TCP connection."""
    with suppress(OSError):  # the descriptor that lists the folder is gone by now
        if stat.S_ISSOCK(os.fstat(descriptor).st_mode):
            with socket.socket(fileno=os.dup(descriptor)) as connection:
                information = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, BYTES_RECEIVED + 8)
            return int(struct.unpack_from("=Q", information, BYTES_RECEIVED)[0])
    return 0

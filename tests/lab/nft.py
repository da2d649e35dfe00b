# SPDX-License-Identifier: GPL-2.0
"""nft's commands without a process each, by the library that nft itself uses."""

import ctypes
import functools


class NftError(RuntimeError):
    """The commands were refused; the text is nft's."""


@functools.cache
def _library():
    lib = ctypes.CDLL("libnftables.so.1")
    text = ctypes.c_char_p
    for name, result, *arguments in (
            ("nft_ctx_new", ctypes.c_void_p, ctypes.c_uint32),
            ("nft_ctx_free", None, ctypes.c_void_p),
            ("nft_ctx_buffer_output", ctypes.c_int, ctypes.c_void_p),
            ("nft_ctx_buffer_error", ctypes.c_int, ctypes.c_void_p),
            ("nft_ctx_get_output_buffer", text, ctypes.c_void_p),
            ("nft_ctx_get_error_buffer", text, ctypes.c_void_p),
            ("nft_ctx_set_dry_run", None, ctypes.c_void_p, ctypes.c_bool),
            ("nft_run_cmd_from_buffer", ctypes.c_int, ctypes.c_void_p, text)):
        function = getattr(lib, name)
        function.restype, function.argtypes = result, arguments
    return lib


def nft(commands, only_check=False):
    """Runs COMMANDS in the calling thread's namespace; returns what they print."""
    lib = _library()
    context = lib.nft_ctx_new(0)
    try:
        lib.nft_ctx_buffer_output(context)
        lib.nft_ctx_buffer_error(context)
        lib.nft_ctx_set_dry_run(context, only_check)
        if lib.nft_run_cmd_from_buffer(context, commands.encode()):
            raise NftError(lib.nft_ctx_get_error_buffer(context).decode())
        return lib.nft_ctx_get_output_buffer(context).decode()
    finally:
        lib.nft_ctx_free(context)

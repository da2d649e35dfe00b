# SPDX-License-Identifier: GPL-2.0
"""Messages with and without a Call-ID, and what in-tree ip_vs (6.12) makes of them."""

from .sip import FIELDS, REST, START


def with_lines(lines, start=START, before=FIELDS):
    return start + before + lines + REST


# {name: (message, Call-ID by which ip_vs keeps it; None: it drops the message)}
CASES = {
    "plain": (with_lines(b"Call-ID: abc@host\r\n"), b'abc@host'),
    "nohost": (with_lines(b"Call-ID: abc\r\n"), b'abc'),
    "lower": (with_lines(b"call-id: abc1\r\n"), b'abc1'),
    "upper": (with_lines(b"CALL-ID: abc2\r\n"), b'abc2'),
    "compact": (with_lines(b"i: abc3\r\n"), b'abc3'),
    "compactI": (with_lines(b"I: abc4\r\n"), b'abc4'),
    "compact-nospace": (with_lines(b"i:abc5\r\n"), b'abc5'),
    "compact-tab": (with_lines(b"i\t:\tabc6\r\n"), b'abc6'),
    "space-colon": (with_lines(b"Call-ID : abc7\r\n"), b'abc7'),
    "fold-value": (with_lines(b"Call-ID:\r\n abc8\r\n"), b'abc8'),
    "fold2": (with_lines(b"Call-ID:\r\n \r\n abc9\r\n"), None),
    "fold-name": (with_lines(b"Call-ID\r\n : abc10\r\n"), b'abc10'),
    "continuation": (with_lines(b"X: y\r\n Call-ID: abc11\r\n"), None),
    "in-value": (with_lines(b"X: Call-ID: abc12\r\n"), None),
    "prefix": (with_lines(b"XCall-ID: abc13\r\n"), None),
    "suffix": (with_lines(b"Call-IDX: abc14\r\n"), None),
    "longi": (with_lines(b"ix: abc15\r\n"), None),
    "two": (with_lines(b"Call-ID: one\r\nCall-ID: two\r\n"), b'one'),
    "two-compact": (with_lines(b"i: cone\r\nCall-ID: ctwo\r\n"), b'cone'),
    "two-compact2": (with_lines(b"Call-ID: done\r\ni: dtwo\r\n"), b'done'),
    "empty-first": (with_lines(b"Call-ID: \r\nCall-ID: etwo\r\n"), None),
    "bad-first": (with_lines(b"Call-ID: ,,\r\nCall-ID: ftwo\r\n"), b'ftwo'),
    "at-end": (with_lines(b"Call-ID: abc16@\r\n"), None),
    "at-first": (with_lines(b"Call-ID: @abc17\r\n"), None),
    "at-two": (with_lines(b"Call-ID: a18@b@c\r\n"), None),
    "comma": (with_lines(b"Call-ID: abc19,x\r\n"), None),
    "semi": (with_lines(b"Call-ID: abc20;x\r\n"), None),
    "space": (with_lines(b"Call-ID: abc21 x\r\n"), None),
    "all": (with_lines(b"Call-ID: a-.!%*_+`'~()<>:\\\"/[]?{}Z@[::1]\r\n"), b'a-.!%*_+`\'~()<>:\\"/[]?{}Z@[::1]'),
    "odd": (with_lines(b"Call-ID: a$b\r\n"), None),
    "odd2": (with_lines(b"Call-ID: ab#c\r\n"), None),
    "odd3": (with_lines(b"Call-ID: ab=c&d|e^f\r\n"), None),
    "nul": (with_lines(b"Call-ID: ab\0c\r\n"), None),
    "lf": (with_lines(b"Call-ID: abc22\r\n").replace(b"\r\n", b"\n"), b'abc22'),
    "cr": (with_lines(b"Call-ID: abc23\r\n").replace(b"\r\n", b"\r"), b'abc23'),
    "body": (START + FIELDS + b"\r\nCall-ID: abc24\r\n", b'abc24'),
    "first-line": (b"Call-ID: abc25\r\n" + FIELDS + REST, None),
    "crlf-first": (b"\r\n\r\n" + with_lines(b"Call-ID: abc26\r\n"), b'abc26'),
    "only-header": (START + b"Call-ID: abc27\r\n\r\n", b'abc27'),
    "no-eol": (START + b"Call-ID: abc28", None),
    "no-value": (START + b"Call-ID:", None),
    "no-colon": (START + b"Call-ID", None),
    "no-value2": (START + b"Call-ID: ", None),
    "at-eof": (START + b"Call-ID: abc29@", None),
    "i-eof": (START + b"i", None),
    "response": (with_lines(b"Call-ID: abc30\r\n", start=b"SIP/2.0 200 OK\r\n"), b'abc30'),
    "not-sip": (with_lines(b"Call-ID: abc31\r\n", start=b"hello\r\n"), b'abc31'),
    "binary-start": (with_lines(b"Call-ID: abc32\r\n", start=b"\0\1\2\xff\r\n"), b'abc32'),
    "one": (with_lines(b"Call-ID: x\r\n"), b'x'),
    "254": (with_lines(b"Call-ID: " + b"a" * 254 + b"\r\n"), b"a" * 254),
    "255": (with_lines(b"Call-ID: " + b"b" * 255 + b"\r\n"), b"b" * 255),
    "256": (with_lines(b"Call-ID: " + b"c" * 256 + b"\r\n"), None),
    "1000": (with_lines(b"Call-ID: " + b"d" * 1000 + b"\r\n"), None),
    "255at": (with_lines(b"Call-ID: " + b"e" * 127 + b"@" + b"f" * 127 + b"\r\n"), b"e" * 127 + b"@" + b"f" * 127),
    "256at": (with_lines(b"Call-ID: " + b"e" * 128 + b"@" + b"f" * 127 + b"\r\n"), None),
    "many": (with_lines(b"Call-ID: abc33\r\n", before=b"".join(b"X-%d: y\r\n" % i for i in range(100))), b'abc33'),
    "tabs": (with_lines(b"Call-ID:\t\t  abc34 \t\r\n"), None),
    "crlf-keepalive": (b"\r\n\r\n", None),
    "no-space-colon": (with_lines(b"Call-ID:abc35\r\n"), b'abc35'),
    "ab": (b"ab", None),
    "zero1": (b"\0", None),
    "lf-only": (b"\n", None),
}

# What l4lb does otherwise: it reads the header of a message and not its body, and the first
# Call-ID counts, even if it cannot be used.
OURS = {"body": None, "bad-first": None}

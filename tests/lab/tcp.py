# SPDX-License-Identifier: GPL-2.0
"""TCP's state tables in ip_vs: for both directions, for one, and with secure_tcp."""

from . import packet, walk
from .packet import ACK, FIN, RST, SYN, TCP

ES, SS, SR, FW, TW, CL, CW, LA, LI, SA = (
    "ESTABLISHED", "SYN_SENT", "SYN_RECV", "FIN_WAIT", "TIME_WAIT", "CLOSE",
    "CLOSE_WAIT", "LAST_ACK", "LISTEN", "SYNACK")
TIMEOUT = {ES: 900, SS: 120, SR: 60, FW: 120, TW: 120, CL: 10, CW: 60, LA: 30,
           LI: 120, SA: 120}
ACTIVE = {ES, SS, SR, SA}
# {event: {state: next state}}; states not listed do not change.
IN = {SYN: {**dict.fromkeys((FW, TW, CL, CW, LA, LI, SA), SR), SS: ES},
      FIN: {ES: CW, **dict.fromkeys((SR, FW, SA), TW)},
      ACK: {SR: ES, SA: ES, LA: CL},
      RST: {**dict.fromkeys((ES, SS, FW, TW, CW), CL), SA: SR},
      0: dict.fromkeys(TIMEOUT, CL)}
OUT = {SYN: {**dict.fromkeys((FW, TW, CL, CW, LA), SS), SA: SR},
       FIN: {**dict.fromkeys((SR, CW, SA), TW), ES: FW},
       ACK: {SR: ES, LI: ES, SA: ES},
       RST: dict.fromkeys((ES, SR, FW, CW, LA, LI, SA), CL),
       0: dict.fromkeys(TIMEOUT, CL)}
IN_ONLY = {SYN: {**dict.fromkeys((FW, TW, CL, CW, LA, LI, SA), SR), SS: ES},
           FIN: {ES: FW, SR: TW, SA: TW},
           ACK: {SR: ES, SA: ES, LA: CL},
           RST: dict.fromkeys((ES, SS, FW, TW, CW, SA), CL),
           0: dict.fromkeys(TIMEOUT, CL)}
# {event: flags of segments that cause it}: the first of RST, SYN, FIN, ACK decides.
DRESSED = {SYN: (SYN, SYN | ACK, SYN | FIN), FIN: (FIN, FIN | ACK), ACK: (ACK, ACK | packet.PSH),
           RST: (RST, RST | ACK), 0: (0, packet.PSH)}


class Walker(walk.Walker):
    """A TCP flow. TABLES: state tables, if not the usual ones; FIRST: the state after its SYN."""

    PROTO, TIMEOUT, ACTIVE = TCP, TIMEOUT, ACTIVE

    def __init__(self, lab, family, tables=None, first=SR):
        nat = lab.shape == "nat"
        super().__init__(lab, family, tables or
                         ({"in": IN, "out": OUT} if nat else {"in": IN_ONLY}), first)

    def arguments(self, event, dressed):
        return (event if dressed is None else dressed,)


SECURE_IN = {SYN: {**dict.fromkeys((FW, TW, CL, CW, LA, LI), SR), SS: ES},
             FIN: {ES: CW, SR: TW, FW: TW},
             ACK: {LA: CL},
             RST: dict.fromkeys((ES, SS, FW, TW, CW, SA), CL)}
SECURE_OUT = {SYN: {**dict.fromkeys((FW, TW, CL, CW, LA), SS), SR: SA},
              FIN: OUT[FIN], ACK: OUT[ACK], RST: OUT[RST]}
SECURE_IN_ONLY = {SYN: {**dict.fromkeys((FW, TW, CL, CW, LA, LI), SA), SS: ES},
                  FIN: IN_ONLY[FIN], ACK: IN_ONLY[ACK], RST: IN_ONLY[RST]}
ANY = dict.fromkeys((ES, SS, SR, FW, TW, CL, CW, LA, LI, SA), CL)
SECURE = {"nat": {"in": {**SECURE_IN, 0: ANY}, "out": {**SECURE_OUT, 0: ANY}},
          "dr": {"in": {**SECURE_IN_ONLY, 0: ANY}}}
